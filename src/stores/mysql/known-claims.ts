import type { Env } from '../../base/env.js'
import type { Granted, Waiting } from '../../contract/store.js'

/** A hold whose lease seems to have ended is remembered for as long as its news is kept. */
const GRACE_MS = 60_000

/** A waiting claim's place in its line, and the place of the first waiter. */
export interface PlacedWaiting extends Waiting {
  readonly place: number
  readonly nextPlace: number
}

/** What is known of a claim that waits. */
export interface WaitingClaim {
  readonly place: number
  readonly grantsAbove: number
  /** When the store drops it, unless it is renewed. */
  readonly endsAt: number
  readonly isExclusive: boolean
  /** How many polls have found that the line has passed its place, without news of it. */
  passedPolls: number
}

/** How far a line is. */
export interface LineProgress {
  /** The place of the first waiter, and the newest fence: they change while the line moves. */
  nextPlace: number
  lastFence: number
  /** The place of the last waiter. */
  lastPlace: number
}

/** A line in which claims of the client wait. */
export interface WaitedLine extends LineProgress {
  readonly resource: string
  /** By id, in the order in which they joined. */
  readonly claims: Map<string, WaitingClaim>
}

interface KnownHold {
  readonly resource: string
  readonly fence: number
  /** When it lapses, unless it is renewed. */
  readonly endsAt: number
  /** It had to wait, so the line has, or had, other claims. */
  readonly wasQueued: boolean
}

/** What a client knows of its claims from the store's answers: where they wait, what it holds. */
export class KnownClaims {
  readonly #env: Env
  readonly #waits = new Map<string, WaitedLine>()
  /** By line and id. */
  readonly #holds = new Map<string, KnownHold>()
  /** By line: the id of the client's own claim that has all of it. */
  readonly #own = new Map<string, string>()

  constructor(env: Env) {
    this.#env = env
  }

  /** By line. */
  get waits(): ReadonlyMap<string, WaitedLine> {
    return this.#waits
  }

  get hasHolds(): boolean {
    return this.#holds.size > 0
  }

  /** Whether the claim waits or is held. */
  has(line: string, id: string): boolean {
    return this.#holds.has(line + id) || (this.#waits.get(line)?.claims.has(id) ?? false)
  }

  /** Whether the client waits in the line, or holds all of it. */
  isIn(line: string): boolean {
    return this.#waits.has(line) || this.#own.has(line)
  }

  /** Whether the client holds all of the line: its own release tells who is next. */
  ownsAll(line: string): boolean {
    return this.#own.has(line)
  }

  holdOf(line: string, id: string): KnownHold | undefined {
    return this.#holds.get(line + id)
  }

  /**
   * The fence of a hold that may be the only claim of its line, and whose lease ends before that of
   * a renewal would; undefined: it is not known to be held so.
   */
  fenceToRenew(line: string, id: string, leaseMs: number): number | undefined {
    const hold = this.#waits.has(line) ? undefined : this.holdOf(line, id)
    return hold && hold.endsAt <= this.#env.now() + leaseMs ? hold.fence : undefined
  }

  /** Whether the claim waits, or has waited before it was granted. */
  wasQueued(line: string, id: string): boolean {
    return this.holdOf(line, id)?.wasQueued ?? this.#waits.get(line)?.claims.has(id) ?? false
  }

  /** The store has answered that a claim waits. */
  wait(resource: string, line: string, id: string, waiting: PlacedWaiting, isExclusive: boolean): void {
    const { place, nextPlace, grantsAbove, presenceMs } = waiting
    this.#unhold(line, id)
    const wait = this.#waits.get(line) ?? {
      resource,
      claims: new Map(),
      nextPlace,
      lastPlace: place,
      lastFence: 0,
    }
    this.#waits.set(line, wait)
    wait.claims.set(id, {
      place,
      grantsAbove,
      endsAt: this.#env.now() + presenceMs,
      isExclusive: isExclusive || this.#isExclusive(line, id),
      passedPolls: 0,
    })
    wait.nextPlace = nextPlace
    wait.lastPlace = Math.max(wait.lastPlace, place)
  }

  /** The store has answered that a claim is held. */
  hold(
    resource: string,
    line: string,
    id: string,
    { fence, leaseMs }: Pick<Granted, 'fence' | 'leaseMs'>,
    isExclusive: boolean,
  ): void {
    if (isExclusive || this.#isExclusive(line, id)) this.#own.set(line, id)
    const wasQueued = this.wasQueued(line, id)
    this.#unqueue(line, id)
    this.#holds.set(line + id, { resource, fence, endsAt: this.#env.now() + leaseMs, wasQueued })
  }

  /**
   * News that a claim is held. false: it does not wait, or the news is of an earlier stay in line.
   */
  promote(line: string, id: string, fence: number): boolean {
    const wait = this.#waits.get(line)
    const claim = wait?.claims.get(id)
    if (!wait || !claim || fence <= claim.grantsAbove) return false
    this.#unqueue(line, id)
    this.#holds.set(line + id, { resource: wait.resource, fence, endsAt: claim.endsAt, wasQueued: true })
    if (claim.isExclusive) this.#own.set(line, id)
    return true
  }

  /** The claim is no longer in any line. false: it was not known. */
  forget(line: string, id: string): boolean {
    const wasKnown = this.has(line, id)
    this.#unhold(line, id)
    this.#unqueue(line, id)
    return wasKnown
  }

  /** The claim has given permits back. false: it did not have all of the line before. */
  share(line: string, id: string): boolean {
    return this.#own.get(line) === id && this.#own.delete(line)
  }

  dropLapsed(): void {
    const now = this.#env.now()
    for (const [key, { endsAt }] of this.#holds) if (endsAt + GRACE_MS <= now) this.#holds.delete(key)
    for (const [line, id] of this.#own) if (!this.#holds.has(line + id)) this.#own.delete(line)
  }

  /** Known from the claim; a pulse does not say it again. */
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
}
