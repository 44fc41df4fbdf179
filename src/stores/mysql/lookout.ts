import type { Cancel, Env } from '../../base/env.js'
import type { Granted, Push, Waiting } from '../../contract/store.js'
import type { Runner } from './runner.js'
import { bytes, fromHex, toBytes } from './values.js'

/** While a line moves: the next one so often, the others after as long as those ahead need at least: a round trip each, where they are of one process. */
const NEXT_MS = 1
const QUICKEST_MS = 4
const QUICKEST_TURN_MS = 0.6
/** While nothing moves: after a part of the time for which nothing has, so that a wait gets longer by that part at most; more only behind the fourth … */
const PATIENCE = 1 / 4
const MOST_PATIENCE = 1
/** … but the first in line this often. Behind it by the square of the place: so the clients in a line do not ask the more the more they are. */
const SLOWEST_MS = 125
/** The fewer clients seem to be in the line, the more often each may ask: whoever sleeps when it begins to move holds up all behind. */
const SLOWEST_MS_PER_CLIENT = 85
const SLOWEST_OF_ALL_MS = 2000
/** What is watched is asked for as if by the third in line. */
const PLACE_OF_STATES = 3
/** Whether a hold was taken away. */
const HOLDS_EVERY_MS = 1000
const AFTER_FAILURE_MS = 250
/** A hold whose time is over, as far as is known, is remembered for as long as the news of it would be kept. */
const GRACE_MS = 60_000
/** So many lines are asked how far they are. A client that waits in more is taken for the first in line in one of them. */
const MOST_LINES = 16
/** How much of the past is looked at again: a promotion is seen once it is committed, which later ones may be before it. Once a second further back. */
const OVERLAP_US = 100_000
const LONG_OVERLAP_US = 5_000_000
const THOROUGH_EVERY_MS = 1000

/** Who waits learns where, and where the first of those that wait is. */
export interface PlacedWaiting extends Waiting {
  readonly place: number
  readonly nextPlace: number
}

/** Who holds learns by which fence and for how long. */
type HeldClaim = Pick<Granted, 'fence' | 'leaseMs'>

interface WaitingClaim {
  readonly place: number
  readonly grantsAbove: number
  readonly endsAt: number
  readonly isExclusive: boolean
}

/** A line in which claims of the client wait. */
interface Wait {
  readonly resource: string
  /** By their ids, in the order in which they joined; with the moment at which the store drops them, unless they are renewed. */
  readonly claims: Map<string, WaitingClaim>
  /** The place of the first of all that wait, and the newest fence: by these a line that moves is told from one that rests. */
  nextPlace: number
  lastFence: number
  /** The place of the last of all. */
  lastPlace: number
}

/** A claim that is held: somebody may take it away. */
interface Held {
  readonly resource: string
  readonly fence: number
  /** When it lapses, unless it is renewed: whoever has lost a hold need not say so. */
  readonly endsAt: number
  /** It had to wait, so there are others in the line, or were. */
  readonly wasQueued: boolean
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
  | readonly ['lost', line: string, id: string, fence: number]
  | readonly ['line', line: string, nextPlace: number, lastPlace: number, lastFence: number]
  | readonly ['state', state: string, last: number]

export interface LookoutContext {
  readonly env: Env
  readonly runner: Runner
  readonly client: string
  push(news: Push): void
}

/**
 * MySQL tells nobody anything, so this asks: one cheap read at a time for all claims of a client and all states that it watches. Only an accelerator, as the
 * pushes of other stores are: the pulse asks the same.
 */
export class Lookout {
  readonly #context: LookoutContext
  readonly #waits = new Map<string, Wait>()
  /** By line and id. */
  readonly #holds = new Map<string, Held>()
  /** The lines that the client itself holds, by the id of the claim that has all of it: what happens there next is told by the answer to its own release. */
  readonly #own = new Map<string, string>()
  readonly #watches = new Map<string, Watch>()
  /** When something was last seen to move. */
  #movedAt = 0
  /** The server's clock at the last look. */
  #lookedAtUs = 0
  #nextThoroughAt = 0
  #nextDropAt = 0
  /** When the next question is due. */
  #askAt = Infinity
  #isAsking = false
  #isClosed = false
  #cancel: Cancel = () => {}

  constructor(context: LookoutContext) {
    this.#context = context
  }

  /** Whether the claim waits or is held, as far as is known. */
  knows(line: string, id: string): boolean {
    return this.#holds.has(line + id) || (this.#waits.get(line)?.claims.has(id) ?? false)
  }

  /** Whether the client itself is in the line. */
  isIn(line: string): boolean {
    return this.#waits.has(line) || this.#own.has(line)
  }

  /** The fence of a hold that may be the only claim of its line; undefined: it is not known to be held, or the client itself waits behind it. */
  fenceOf(line: string, id: string): number | undefined {
    return this.#waits.has(line) ? undefined : this.#holds.get(line + id)?.fence
  }

  /** Whether the claim waits, or has waited before it was granted. */
  wasQueued(line: string, id: string): boolean {
    return this.#holds.get(line + id)?.wasQueued ?? this.#waits.get(line)?.claims.has(id) ?? false
  }

  /** The store has answered that a claim waits. */
  wait(resource: string, line: string, id: string, waiting: PlacedWaiting, isExclusive: boolean): void {
    const { place, nextPlace, grantsAbove, presenceMs } = waiting
    const isNew = !this.knows(line, id)
    this.#unhold(line, id)
    const wait = this.#waits.get(line) ?? {
      resource,
      claims: new Map(),
      nextPlace,
      lastPlace: place,
      lastFence: 0,
    }
    this.#waits.set(line, wait)
    const endsAt = this.#context.env.now() + presenceMs
    wait.claims.set(id, {
      place,
      grantsAbove,
      endsAt,
      isExclusive: isExclusive || this.#isExclusive(line, id),
    })
    wait.nextPlace = nextPlace
    wait.lastPlace = Math.max(wait.lastPlace, place)
    if (isNew) this.#moved()
  }

  /** The store has answered that a claim is held, and for how long. */
  hold(resource: string, line: string, id: string, claim: HeldClaim, isExclusive: boolean): void {
    const { fence, leaseMs } = claim
    if (isExclusive || this.#isExclusive(line, id)) this.#own.set(line, id)
    const wasQueued = this.wasQueued(line, id)
    this.#unqueue(line, id)
    this.#holds.set(line + id, { resource, fence, endsAt: this.#context.env.now() + leaseMs, wasQueued })
    this.#plan(this.#intervalMs())
  }

  /** The store has told that a claim is held. false: it was not known to wait, or that was an earlier stay of the same id in the line. */
  promote(line: string, id: string, fence: number): boolean {
    const wait = this.#waits.get(line)
    const claim = wait?.claims.get(id)
    if (!wait || !claim || fence <= claim.grantsAbove) return false
    this.#unqueue(line, id)
    this.#holds.set(line + id, { resource: wait.resource, fence, endsAt: claim.endsAt, wasQueued: true })
    if (claim.isExclusive) this.#own.set(line, id)
    return true
  }

  /** The claim is in no line any more. false: that was known. */
  forget(line: string, id: string): boolean {
    const wasKnown = this.knows(line, id)
    this.#unhold(line, id)
    this.#unqueue(line, id)
    return wasKnown
  }

  /** The claim has given permits back: it is not the only one that counts any more. */
  share(line: string, id: string): void {
    if (this.#own.get(line) !== id) return
    this.#own.delete(line)
    this.left(line)
  }

  /** The client has left the line, and knows by now who of its own is next: somebody else may be. */
  left(line: string): void {
    if (this.#waits.has(line) && !this.#own.has(line)) this.#moved()
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

  /** Told when it joined the line; a pulse does not say it again. */
  #isExclusive(line: string, id: string): boolean {
    return this.#own.get(line) === id || (this.#waits.get(line)?.claims.get(id)?.isExclusive ?? false)
  }

  #unhold(line: string, id: string): void {
    this.#holds.delete(line + id)
    if (this.#own.get(line) === id) this.#own.delete(line)
  }

  #unqueue(line: string, id: string): void {
    const wait = this.#waits.get(line)
    wait?.claims.delete(id)
    if (wait?.claims.size === 0) this.#waits.delete(line)
  }

  #moved(): void {
    this.#movedAt = this.#context.env.now()
    this.#plan(this.#intervalMs())
  }

  /** Asks after that time, or earlier if that was planned: what comes in between must not put it off for ever. */
  #plan(ms: number): void {
    const { env } = this.#context
    const at = env.now() + ms
    if (this.#isAsking || this.#isClosed || at >= this.#askAt) return
    this.#cancel()
    this.#askAt = at
    this.#cancel = env.timer(ms, () => void this.#ask(), { keepAlive: false })
  }

  get #isIdle(): boolean {
    return this.#waits.size + this.#holds.size + this.#watches.size === 0
  }

  #dropLapsed(): void {
    const now = this.#context.env.now()
    if (now < this.#nextDropAt) return
    this.#nextDropAt = now + SLOWEST_OF_ALL_MS
    for (const [key, { endsAt }] of this.#holds) if (endsAt + GRACE_MS <= now) this.#holds.delete(key)
    for (const [line, id] of this.#own) if (!this.#holds.has(line + id)) this.#own.delete(line)
  }

  #intervalMs(): number {
    let ms = this.#holds.size > 0 ? HOLDS_EVERY_MS : SLOWEST_OF_ALL_MS
    if (this.#watches.size > 0) ms = Math.min(ms, this.#waitingMs(PLACE_OF_STATES))
    if (this.#waits.size > MOST_LINES) ms = Math.min(ms, this.#waitingMs(1))
    else
      for (const [line, wait] of this.#waits)
        if (!this.#own.has(line)) ms = Math.min(ms, this.#inLineMs(wait))
    return ms * (0.8 + this.#context.env.random() * 0.4)
  }

  #inLineMs({ claims, nextPlace, lastPlace }: Wait): number {
    const [first] = claims.values()
    // From 1 on.
    const place = Math.max(0, (first?.place ?? nextPlace) - nextPlace) + 1
    // As if the others had as many claims each as we.
    const clients = (lastPlace - nextPlace + 1) / claims.size
    return this.#waitingMs(place, clients)
  }

  #waitingMs(place: number, clients = Infinity): number {
    const movingMs = place === 1 ? NEXT_MS : Math.max(QUICKEST_MS, place * QUICKEST_TURN_MS)
    const restMs =
      (this.#context.env.now() - this.#movedAt) * Math.min(MOST_PATIENCE, PATIENCE * Math.max(1, place / 4))
    const shareMs = Math.max(SLOWEST_MS, clients * SLOWEST_MS_PER_CLIENT)
    const mostMs = Math.min(SLOWEST_MS * place ** 2, shareMs, SLOWEST_OF_ALL_MS)
    return Math.min(mostMs, Math.max(movingMs, restMs))
  }

  /** Never rejects: the next question makes up for one that failed. */
  async #ask(): Promise<void> {
    this.#askAt = Infinity
    this.#dropLapsed()
    if (this.#isIdle) return
    this.#isAsking = true
    let hasFailed = false
    try {
      const rows = await this.#context.runner.query(this.#question())
      if (this.#isClosed) return
      for (const row of rows) this.#see(JSON.parse(row))
    } catch {
      // Those who wait hear of it by calls of their own.
      hasFailed = true
    }
    this.#isAsking = false
    if (!this.#isIdle) this.#plan(hasFailed ? AFTER_FAILURE_MS : this.#intervalMs())
  }

  #question(): string {
    const { runner, client } = this.#context
    const { line, news, state } = runner.names
    const parts = [
      answer(`'now'`, `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))`),
      `${answer('what', hex('line'), hex('id'), 'fence')} FROM ${news} WHERE client = ${toBytes(client)} AND at > ${this.#sinceUs()}`,
    ]
    if (this.#waits.size > 0)
      parts.push(
        `${answer(`'line'`, hex('line'), 'COALESCE(next_place, 0)', 'last_place', 'last')} FROM ${line} WHERE line IN (${listOf(this.#waits, MOST_LINES)})`,
      )
    if (this.#watches.size > 0)
      parts.push(
        `${answer(`'state'`, hex('state'), 'last')} FROM ${state} WHERE state IN (${listOf(this.#watches, Infinity)})`,
      )
    return parts.join(' UNION ALL ')
  }

  #sinceUs(): number {
    const now = this.#context.env.now()
    const isThorough = now >= this.#nextThoroughAt
    if (isThorough) this.#nextThoroughAt = now + THOROUGH_EVERY_MS
    return this.#lookedAtUs - (isThorough ? LONG_OVERLAP_US : OVERLAP_US)
  }

  #see(sight: Sight): void {
    switch (sight[0]) {
      case 'now':
        this.#lookedAtUs = sight[1]
        return
      case 'granted':
        return this.#seeGrant(sight[1], fromHex(sight[2]), sight[3])
      case 'lost':
        return this.#seeLoss(sight[1], fromHex(sight[2]), sight[3])
      case 'line':
        return this.#seeLine(sight[1], { nextPlace: sight[2], lastPlace: sight[3], lastFence: sight[4] })
      case 'state':
        return this.#seeState(sight[1], sight[2])
    }
  }

  /** One whose "waiting" has not been read yet is not known; the next look shows it again. */
  #seeGrant(line: string, id: string, fence: number): void {
    const resource = this.#waits.get(line)?.resource
    if (resource === undefined || !this.promote(line, id, fence)) return
    this.#movedAt = this.#context.env.now()
    this.#context.push({ type: 'granted', resource, id, fence })
  }

  /** The same id may have joined the line again since then; a fence, or a place, tells one stay in line from another. */
  #seeLoss(line: string, id: string, fence: number): void {
    const held = this.#holds.get(line + id)
    const wait = this.#waits.get(line)
    const claim = wait?.claims.get(id)
    const isMeant = held?.fence === fence || (claim && (fence > claim.grantsAbove || fence === -claim.place))
    const resource = (held ?? wait)?.resource
    if (!isMeant || resource === undefined) return
    this.forget(line, id)
    this.#context.push({ type: 'lost', resource, id })
  }

  #seeLine(line: string, seen: Pick<Wait, 'nextPlace' | 'lastPlace' | 'lastFence'>): void {
    const wait = this.#waits.get(line)
    if (!wait) return
    if (wait.lastFence !== seen.lastFence) this.#movedAt = this.#context.env.now()
    Object.assign(wait, seen)
  }

  #seeState(state: string, last: number): void {
    const watch = this.#watches.get(state)
    if (!watch || watch.last === last) return
    this.unwatch(state)
    this.#movedAt = this.#context.env.now()
    this.#context.push({ type: 'state', key: watch.key })
  }
}

/** A SELECT whose rows are JSON arrays: a word, and then these columns. */
function answer(word: string, ...columns: string[]): string {
  return `SELECT CONCAT('["', ${word}, '",', ${columns.join(", ',', ")}, ']') AS answer`
}

function hex(column: string): string {
  return `'"', HEX(${column}), '"'`
}

function listOf(keys: ReadonlyMap<string, unknown>, most: number): string {
  return [...keys.keys()].slice(0, most).map(bytes).join(',')
}
