import type { Cancel, Env } from '../../base/env.js'
import type { Granted, Push } from '../../contract/store.js'
import { LONGEST_OF_ALL_MS, PLACE_OF_STATES, waiterMs } from '../shared/poll-interval.js'
import { KnownClaims, type LineProgress, type PlacedWaiting, type WaitingClaim } from './known-claims.js'
import { lineMs } from './line-interval.js'
import { type PollRow, pollQuery } from './poll-query.js'
import type { MysqlRunner } from './runner.js'
import { fromHex } from './values.js'

/** Poll interval of a client that only holds: a hold may be revoked. */
const HOLDS_MS = 1000
const AFTER_FAILURE_MS = 250
/** The most lines of one poll. A client that waits in more polls as often as the first in line. */
const MOST_LINES = 16
/** How far a poll looks back: grants may be committed in another order than they were made. */
const OVERLAP_US = 100_000
/** Once a second it looks back further. */
const LONG_OVERLAP_US = 5_000_000
const THOROUGH_INTERVAL_MS = 1000

interface Watch {
  readonly key: string
  /** The number of the newest change that was read. */
  readonly last: number
}

export interface MysqlPollerContext {
  readonly env: Env
  readonly runner: MysqlRunner
  readonly client: string
  push(news: Push): void
}

/**
 * MySQL has no pushes, so each client polls: one cheap read at a time for all of its claims and
 * watched states. Only an accelerator, as the pushes of other stores are: the pulse asks the same.
 */
export class MysqlPoller {
  readonly claims: KnownClaims
  readonly #context: MysqlPollerContext
  readonly #watches = new Map<string, Watch>()
  /** When a line or state was last seen to move. */
  #movedAt = 0
  /** The server's clock at the last poll. */
  #polledAtUs = 0
  #nextThoroughAt = 0
  #nextDropAt = 0
  /** When the next poll is due. */
  #dueAt = Infinity
  #isPolling = false
  #isClosed = false
  #cancel: Cancel = () => {}

  constructor(context: MysqlPollerContext) {
    this.#context = context
    this.claims = new KnownClaims(context.env)
  }

  /** The store has answered that a claim waits. */
  wait(resource: string, line: string, id: string, waiting: PlacedWaiting, isExclusive: boolean): void {
    const isNew = !this.claims.has(line, id)
    this.claims.wait(resource, line, id, waiting, isExclusive)
    if (isNew) this.#moved()
  }

  /** The store has answered that a claim is held. */
  hold(
    resource: string,
    line: string,
    id: string,
    hold: Pick<Granted, 'fence' | 'leaseMs'>,
    isExclusive: boolean,
  ): void {
    this.claims.hold(resource, line, id, hold, isExclusive)
    this.#schedule(this.#intervalMs())
  }

  /** The claim has given permits back: others may come in beside it. */
  share(line: string, id: string): void {
    if (this.claims.share(line, id)) this.left(line)
  }

  /** A claim of the client has left the line; the claim that is next may be another client's. */
  left(line: string): void {
    if (this.claims.waits.has(line) && !this.claims.ownsAll(line)) this.#moved()
  }

  watch(state: string, key: string, last: number): void {
    this.#watches.set(state, { key, last })
    this.#moved()
  }

  /** false: it was not watched. */
  unwatch(state: string): boolean {
    return this.#watches.delete(state)
  }

  close(): void {
    this.#isClosed = true
    this.#cancel()
  }

  #moved(): void {
    this.#movedAt = this.#context.env.now()
    this.#schedule(this.#intervalMs())
  }

  /** Polls after that time, or at the earlier time that was scheduled already. */
  #schedule(ms: number): void {
    const { env } = this.#context
    const at = env.now() + ms
    if (this.#isPolling || this.#isClosed || at >= this.#dueAt) return
    this.#cancel()
    this.#dueAt = at
    this.#cancel = env.timer(ms, () => void this.#poll(), { keepAlive: false })
  }

  get #isIdle(): boolean {
    return this.claims.waits.size + this.#watches.size === 0 && !this.claims.hasHolds
  }

  #intervalMs(): number {
    const { env } = this.#context
    const { waits, hasHolds } = this.claims
    const restMs = env.now() - this.#movedAt
    let ms = hasHolds ? HOLDS_MS : LONGEST_OF_ALL_MS
    if (this.#watches.size > 0) ms = Math.min(ms, waiterMs(PLACE_OF_STATES, restMs))
    if (waits.size > MOST_LINES) ms = Math.min(ms, waiterMs(1, restMs))
    else
      for (const [line, wait] of waits)
        if (!this.claims.ownsAll(line)) ms = Math.min(ms, lineMs(wait, restMs))
    return ms * (0.8 + env.random() * 0.4)
  }

  /** Never rejects: the next poll makes up for one that failed. */
  async #poll(): Promise<void> {
    this.#dueAt = Infinity
    this.#dropLapsed()
    if (this.#isIdle) return
    this.#isPolling = true
    let hasFailed = false
    try {
      const rows = await this.#context.runner.query(this.#query())
      if (this.#isClosed) return
      for (const row of rows) this.#onRow(JSON.parse(row))
    } catch {
      // Calls that a caller waits for report the failure.
      hasFailed = true
    }
    this.#isPolling = false
    if (!this.#isIdle) this.#schedule(hasFailed ? AFTER_FAILURE_MS : this.#intervalMs())
  }

  #dropLapsed(): void {
    const now = this.#context.env.now()
    if (now < this.#nextDropAt) return
    this.#nextDropAt = now + LONGEST_OF_ALL_MS
    this.claims.dropLapsed()
  }

  #query(): string {
    const { runner, client } = this.#context
    return pollQuery(runner.names, {
      client,
      sinceUs: this.#sinceUs(),
      lines: [...this.claims.waits.keys()].slice(0, MOST_LINES),
      states: [...this.#watches.keys()],
    })
  }

  #sinceUs(): number {
    const now = this.#context.env.now()
    const isThorough = now >= this.#nextThoroughAt
    if (isThorough) this.#nextThoroughAt = now + THOROUGH_INTERVAL_MS
    return this.#polledAtUs - (isThorough ? LONG_OVERLAP_US : OVERLAP_US)
  }

  #onRow(row: PollRow): void {
    switch (row[0]) {
      case 'now':
        this.#polledAtUs = row[1]
        return
      case 'granted':
        return this.#onGrant(row[1], fromHex(row[2]), row[3])
      case 'lost':
        return this.#onLoss(row[1], fromHex(row[2]), row[3])
      case 'line':
        return this.#onLine(row[1], { nextPlace: row[2], lastPlace: row[3], lastFence: row[4] })
      case 'state':
        return this.#onState(row[1], row[2])
    }
  }

  /** A claim whose "waiting" has not been read yet is not known; the next poll shows it again. */
  #onGrant(line: string, id: string, fence: number): void {
    const resource = this.claims.waits.get(line)?.resource
    if (resource === undefined || !this.claims.promote(line, id, fence)) return
    this.#movedAt = this.#context.env.now()
    this.#context.push({ type: 'granted', resource, id, fence })
  }

  /**
   * The same id may have joined the line again since: the fence or place tells which stay is meant.
   */
  #onLoss(line: string, id: string, fence: number): void {
    const hold = this.claims.holdOf(line, id)
    const wait = this.claims.waits.get(line)
    const claim = wait?.claims.get(id)
    const isMeant = hold?.fence === fence || (claim && (fence > claim.grantsAbove || fence === -claim.place))
    const resource = (hold ?? wait)?.resource
    if (!isMeant || resource === undefined) return
    this.claims.forget(line, id)
    this.#context.push({ type: 'lost', resource, id })
  }

  #onLine(line: string, progress: LineProgress): void {
    const wait = this.claims.waits.get(line)
    if (!wait) return
    if (wait.lastFence !== progress.lastFence) this.#movedAt = this.#context.env.now()
    Object.assign(wait, progress)
    for (const claim of wait.claims.values()) this.#checkPlace(claim, progress)
  }

  /**
   * News of a claim that comes with the answer to a call of ours is lost with that answer. One poll
   * may be ahead of the answer; two are not.
   */
  #checkPlace(claim: WaitingClaim, { nextPlace, lastPlace }: LineProgress): void {
    const isPassed = claim.place <= lastPlace && (nextPlace === 0 || claim.place < nextPlace)
    if (isPassed && ++claim.passedPolls === 2) this.#context.push({ type: 'gap' })
  }

  #onState(state: string, last: number): void {
    const watch = this.#watches.get(state)
    if (!watch || watch.last === last) return
    this.unwatch(state)
    this.#movedAt = this.#context.env.now()
    this.#context.push({ type: 'state', key: watch.key })
  }
}
