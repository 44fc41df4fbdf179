import { EXCLUSIVE } from '../../contract/constants.js'
import type { WatchListener, ZooKeeperClient } from '../../drivers/zookeeper/index.js'
import { lookAt } from './asking.js'
import type { Cue } from './line.js'
import type { ClaimName } from './names.js'
import type { Places } from './places.js'
import type { Stay } from './stay.js'

/** A claim that waits watches whatever bars it: one node, the list of the line, or a claim of its own client. */
export class Lookout {
  readonly #places: Places
  readonly #line: string
  readonly #owner: Stay
  #watched: { readonly path: string; readonly stop: () => void; cue: Cue } | null = null
  #seenMark = ''

  constructor(places: Places, line: string, owner: Stay) {
    this.#places = places
    this.#line = line
    this.#owner = owner
  }

  /** Watches for the cue. true: it has come since the line was listed. */
  async watch(cue: Cue, mine: ClaimName): Promise<boolean> {
    const path = cue.type === 'line' ? this.#line : `${this.#line}/${cue.name}`
    if (this.#watched?.path === path) {
      this.#watched.cue = cue
      return false
    }
    this.stop()
    const own = mine.capacity === EXCLUSIVE ? this.#places.stayAt(path) : undefined
    if (!own) return this.#watchOnServer(cue, path, mine)
    // Of our own claims we know without the server when they leave.
    this.#watched = { path, stop: own.follow(this.#owner), cue }
    return false
  }

  stop(): void {
    this.#watched?.stop()
    this.#watched = null
  }

  async #watchOnServer(cue: Cue, path: string, mine: ClaimName): Promise<boolean> {
    const { zk } = this.#places.session
    const listener: WatchListener = ({ type }) => {
      if (this.#watched?.stop !== stop) return
      const isWord = this.#isWord(this.#watched.cue, type)
      this.#watched = null
      this.#owner.onCue(isWord)
    }
    const stop = (): void => zk.unwatch(path, listener)
    // Before it is sent: the event may come right behind the answer.
    this.#watched = { path, stop, cue }
    try {
      const isOver =
        cue.type === 'line'
          ? await this.#watchLine(zk, mine, listener)
          : await this.#watchNode(zk, path, listener)
      if (isOver) this.stop()
      return isOver
    } catch (error) {
      this.stop()
      throw error
    }
  }

  /** Nobody writes to an exclusive claim's node but its holder, when it leaves. Curator's do, to ask for a hold. */
  #isWord(cue: Cue, event: string): boolean {
    return event === 'changed' && cue.type === 'node' && cue.isAll && this.#places.format.isOwn
  }

  /** Whether the line has changed to our advantage since we listed it. */
  async #watchLine(zk: ZooKeeperClient, mine: ClaimName, watch: WatchListener): Promise<boolean> {
    const { children, stat } = await zk.getChildren(this.#line, { watch })
    const line = this.#places.line(children, stat)
    const found = line.find(mine.name)
    return !found || line.standing(found).isHeld
  }

  /** Whether the node has left, or was marked as granted, since we listed. */
  async #watchNode(zk: ZooKeeperClient, path: string, watch: WatchListener): Promise<boolean> {
    const stat = await lookAt(zk, path, watch)
    if (!stat) return true
    const mark = `${path} ${stat.version}`
    const isNews = stat.version > 0 && mark !== this.#seenMark
    this.#seenMark = mark
    return isNews
  }
}
