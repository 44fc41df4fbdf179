import { EXCLUSIVE } from '../../contract/constants.js'
import type { WatchEvent, WatchListener, ZooKeeperClient } from '../../drivers/zookeeper/index.js'
import type { LineClaim } from './claim.js'
import type { WatchTarget } from './line.js'
import type { ClaimName } from './names.js'
import { watchNode } from './node-writes.js'
import type { ZooKeeperSpace } from './space.js'

/** Watches what keeps a claim waiting: one node, the list of the line, or a node of this client. */
export class PredecessorWatch {
  readonly #space: ZooKeeperSpace
  readonly #line: string
  readonly #claim: LineClaim
  #watched: { readonly path: string; readonly stop: () => void; target: WatchTarget } | null = null
  #seenMark = ''

  constructor(space: ZooKeeperSpace, line: string, claim: LineClaim) {
    this.#space = space
    this.#line = line
    this.#claim = claim
  }

  /** true: the target has changed since the line was listed, and nothing is watched. */
  async start(target: WatchTarget, mine: ClaimName): Promise<boolean> {
    const path = target.type === 'line' ? this.#line : `${this.#line}/${target.name}`
    if (this.#watched?.path === path) {
      this.#watched.target = target
      return false
    }
    this.stop()
    // In a lock's line the release of that node may grant the claim, unless it was removed before.
    if (mine.capacity === EXCLUSIVE) this.#claim.watchNode()
    const own = mine.capacity === EXCLUSIVE ? this.#space.own.at(path) : undefined
    if (!own) return this.#watchOnServer(target, path, mine)
    // The client knows itself when its own claims leave.
    this.#watched = { path, stop: own.follow(this.#claim), target }
    return false
  }

  stop(): void {
    this.#watched?.stop()
    this.#watched = null
  }

  async #watchOnServer(target: WatchTarget, path: string, mine: ClaimName): Promise<boolean> {
    const { zk } = this.#space.session
    const listener: WatchListener = (event) => {
      if (this.#watched?.stop !== stop) return
      const isReleased = this.#isReleased(this.#watched.target, event)
      this.#watched = null
      this.#claim.onPredecessorChange(isReleased)
    }
    const stop = (): void => zk.unwatch(path, listener)
    // Set before the request is sent: the event may come right behind the answer.
    this.#watched = { path, stop, target }
    try {
      const hasChanged =
        target.type === 'line'
          ? await this.#watchLine(zk, mine, listener)
          : await this.#watchNode(zk, path, listener)
      if (hasChanged) this.stop()
      return hasChanged
    } catch (error) {
      this.stop()
      throw error
    }
  }

  /**
   * Only its holder writes to an exclusive claim's node, when it releases. On shared lines Curator
   * writes, too. After a reconnect, the holder may have replaced its node by one of the same name.
   */
  #isReleased(target: WatchTarget, { type, wasSetAgain }: WatchEvent): boolean {
    const isAnnounced = type === 'changed' && !wasSetAgain && this.#space.format.isOwn
    return isAnnounced && target.type === 'node' && target.isOnlyObstacle
  }

  /** Whether the claim is granted, or gone, in the line as it is now. */
  async #watchLine(zk: ZooKeeperClient, mine: ClaimName, watch: WatchListener): Promise<boolean> {
    const { children, stat } = await zk.getChildren(this.#line, { watch })
    const line = this.#space.line(children, stat)
    const found = line.find(mine.name)
    return !found || line.standing(found).isHeld
  }

  /** Whether the node has left, or was marked as granted, since the line was listed. */
  async #watchNode(zk: ZooKeeperClient, path: string, watch: WatchListener): Promise<boolean> {
    const stat = await watchNode(zk, path, watch)
    if (!stat) return true
    const mark = `${path} ${stat.version}`
    const isNews = stat.version > 0 && mark !== this.#seenMark
    this.#seenMark = mark
    return isNews
  }
}
