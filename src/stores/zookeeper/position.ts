import type { LineClaim } from './claim.js'
import type { ListedLine } from './line.js'
import { fenceOf, lastFenceOf } from './names.js'
import { PredecessorWatch } from './predecessor-watch.js'
import type { ZooKeeperSpace } from './space.js'

/**
 * Where a waiting claim stands in its line. Lists the line and watches what is ahead, until the
 * claim is granted.
 */
export class LinePosition {
  /** How many claims wait ahead of it. */
  ahead = 0
  /** See `Waiting`. */
  grantsAbove = 0
  readonly #space: ZooKeeperSpace
  readonly #claim: LineClaim
  readonly #watch: PredecessorWatch
  /** Something has changed since the line was listed. */
  #isStale = false
  #updating: Promise<void> | null = null

  constructor(space: ZooKeeperSpace, line: string, claim: LineClaim) {
    this.#space = space
    this.#claim = claim
    this.#watch = new PredecessorWatch(space, line, claim)
  }

  get isNext(): boolean {
    return this.ahead === 0
  }

  /** The update that is under way. */
  get updating(): Promise<void> | null {
    return this.#updating
  }

  /**
   * Finds out where the claim stands, in `line` if it is given. Calls that come meanwhile share the
   * answer.
   */
  update(line?: ListedLine): Promise<void> {
    if (this.#claim.state !== 'waiting') return Promise.resolve()
    this.#isStale = true
    this.#updating ??= this.#update(line)
    return this.#updating
  }

  stopWatching(): void {
    this.#watch.stop()
  }

  async #update(line?: ListedLine): Promise<void> {
    let known = line
    try {
      while (this.#isStale && this.#claim.state === 'waiting') {
        this.#isStale = false
        await this.#claim.recover()
        if (this.#claim.state !== 'waiting') return
        await this.#look(known ?? (await this.#space.list(this.#claim.resource)))
        known = undefined
      }
    } finally {
      this.#updating = null
    }
  }

  async #look(line: ListedLine): Promise<void> {
    const { attempt, fence } = this.#claim
    const mine = attempt.node && line.find(attempt.node.claim.name)
    if (!mine) return this.#claim.lose()
    const standing = line.standing(mine)
    const isOvertaken = fenceOf(line.lastJump) > fence
    this.grantsAbove = Math.max(fence - 1, isOvertaken ? lastFenceOf(line.lastJump) : 0)
    if (standing.isHeld) return this.#claim.grant(line, mine, isOvertaken)
    this.ahead = standing.ahead
    if (await this.#watch.start(standing.target, mine)) this.#isStale = true
  }
}
