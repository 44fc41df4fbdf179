import type { Cancel, Env } from '../../base/env.js'
import type { Push } from '../../contract/store.js'
import type { Runner } from './runner.js'
import { bytes, fromHex, toBytes } from './values.js'

/** While a line moves: about one question for each turn of those ahead, who need a round trip each at least. */
const QUICKEST_MS = 1
/** While nothing moves: after a part of the time for which nothing has, so that a wait gets longer by that part at most … */
const PATIENCE = 1 / 8
/** … but the first in line this often. Behind it by the square of the place: so the clients in a line do not ask the more the more they are. */
const SLOWEST_MS = 100
const SLOWEST_OF_ALL_MS = 1000
/** What is watched is asked for as if by the third in line. */
const PLACE_OF_STATES = 3
const AFTER_FAILURE_MS = 250
/** So many lines are asked how far they are. A client that waits in more is taken for the first in line in one of them. */
const MOST_LINES = 16
/** How much of the past is looked at again: a promotion is seen once it is committed, which later ones may be before it. */
const OVERLAP_US = 2_000_000

/** A line in which claims of the client wait. */
interface Wait {
  readonly resource: string
  /** The places of the claims by their ids, in the order in which they joined. */
  readonly places: Map<string, number>
  /** The place of the first of all that wait, and the newest fence: by these a line that moves is told from one that rests. */
  nextPlace: number
  lastFence: number
}

interface Watch {
  readonly key: string
  /** The number of the newest change that was read. */
  readonly last: number
}

/** What a row of the answer says. */
type Sight =
  | readonly ['now', timeUs: number]
  | readonly ['granted', line: string, id: string, fence: number]
  | readonly ['line', line: string, nextPlace: number, lastFence: number]
  | readonly ['state', state: string, last: number]

export interface LookoutContext {
  readonly env: Env
  readonly runner: Runner
  readonly client: string
  push(news: Push): void
}

/**
 * MySQL tells nobody anything, so this asks: one cheap read at a time for all claims of a client that wait and all states that it watches. Only an
 * accelerator, as the pushes of other stores are: the pulse asks the same.
 */
export class Lookout {
  readonly #context: LookoutContext
  readonly #waits = new Map<string, Wait>()
  readonly #watches = new Map<string, Watch>()
  /** When something was last seen to move. */
  #movedAt = 0
  /** Promotions before this, by the server's clock, have been seen. */
  #sinceUs = 0
  #isAsking = false
  #isClosed = false
  #cancel: Cancel = () => {}

  constructor(context: LookoutContext) {
    this.#context = context
  }

  /** The store has answered that a claim waits. */
  wait(resource: string, line: string, id: string, place: number, nextPlace: number): void {
    const wait = this.#waits.get(line) ?? { resource, places: new Map(), nextPlace, lastFence: 0 }
    this.#waits.set(line, wait)
    const isNew = !wait.places.has(id)
    wait.places.set(id, place)
    wait.nextPlace = nextPlace
    if (isNew) this.#moved()
  }

  /** Whatever became of the claim, it does not wait any more. false: it did not. */
  forget(line: string, id: string): boolean {
    const wait = this.#waits.get(line)
    const wasThere = wait?.places.delete(id) ?? false
    if (wait?.places.size === 0) this.#waits.delete(line)
    return wasThere
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
    this.#plan(() => this.#intervalMs())
  }

  #plan(intervalMs: () => number): void {
    this.#cancel()
    if (this.#isAsking || this.#isClosed || (this.#waits.size === 0 && this.#watches.size === 0)) return
    this.#cancel = this.#context.env.timer(intervalMs(), () => void this.#ask(), { keepAlive: false })
  }

  #intervalMs(): number {
    const { env } = this.#context
    const place = this.#place()
    const restMs = (env.now() - this.#movedAt) * PATIENCE
    const mostMs = Math.min(SLOWEST_MS * place ** 2, SLOWEST_OF_ALL_MS)
    return Math.min(mostMs, Math.max(QUICKEST_MS * place, restMs)) * (0.8 + env.random() * 0.4)
  }

  /** The best place in a line that any of the claims has; 1 is the first of those that wait. */
  #place(): number {
    if (this.#waits.size > MOST_LINES) return 1
    let best = this.#watches.size > 0 ? PLACE_OF_STATES : Infinity
    for (const { places, nextPlace } of this.#waits.values()) {
      const [first = nextPlace] = places.values()
      best = Math.min(best, Math.max(0, first - nextPlace) + 1)
    }
    return best
  }

  /** Never rejects: the next question makes up for one that failed. */
  async #ask(): Promise<void> {
    this.#isAsking = true
    let intervalMs = (): number => AFTER_FAILURE_MS
    try {
      const rows = await this.#context.runner.query(this.#question())
      if (this.#isClosed) return
      for (const row of rows) this.#see(JSON.parse(row))
      intervalMs = () => this.#intervalMs()
    } catch {
      // Those who wait hear of it by calls of their own.
    }
    this.#isAsking = false
    this.#plan(intervalMs)
  }

  #question(): string {
    const { runner, client } = this.#context
    const { line, claim, state } = runner.names
    const parts = [
      `SELECT CONCAT('["now",', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), ']') AS answer`,
    ]
    if (this.#waits.size > 0)
      parts.push(
        `SELECT CONCAT('["granted","', HEX(line), '","', HEX(id), '",', fence, ']') FROM ${claim} WHERE client = ${toBytes(client)} AND handed > ${this.#sinceUs}`,
        `SELECT CONCAT('["line","', HEX(line), '",', COALESCE(next_place, 0), ',', last, ']') FROM ${line} WHERE line IN (${listOf(this.#waits, MOST_LINES)})`,
      )
    if (this.#watches.size > 0)
      parts.push(
        `SELECT CONCAT('["state","', HEX(state), '",', last, ']') FROM ${state} WHERE state IN (${listOf(this.#watches, Infinity)})`,
      )
    return parts.join(' UNION ALL ')
  }

  #see(sight: Sight): void {
    switch (sight[0]) {
      case 'now':
        this.#sinceUs = sight[1] - OVERLAP_US
        return
      case 'granted':
        return this.#seeGrant(sight[1], fromHex(sight[2]), sight[3])
      case 'line':
        return this.#seeLine(sight[1], sight[2], sight[3])
      case 'state':
        return this.#seeState(sight[1], sight[2])
    }
  }

  #seeGrant(line: string, id: string, fence: number): void {
    const resource = this.#waits.get(line)?.resource
    if (resource === undefined || !this.forget(line, id)) return
    this.#movedAt = this.#context.env.now()
    this.#context.push({ type: 'granted', resource, id, fence })
  }

  #seeLine(line: string, nextPlace: number, lastFence: number): void {
    const wait = this.#waits.get(line)
    if (!wait) return
    if (wait.lastFence !== lastFence) this.#movedAt = this.#context.env.now()
    wait.nextPlace = nextPlace
    wait.lastFence = lastFence
  }

  #seeState(state: string, last: number): void {
    const watch = this.#watches.get(state)
    if (!watch || watch.last === last || !this.unwatch(state)) return
    this.#movedAt = this.#context.env.now()
    this.#context.push({ type: 'state', key: watch.key })
  }
}

function listOf(keys: ReadonlyMap<string, unknown>, most: number): string {
  return [...keys.keys()].slice(0, most).map(bytes).join(',')
}
