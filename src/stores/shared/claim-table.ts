import type { Cancel, Env } from '../../base/env.js'
import type { ClaimRequest } from '../../contract/store.js'
import type { CallQueue } from './call-queue.js'
import type { ClaimExpiry } from './claim-expiry.js'

/** A claim that lasts as long as its client's session, unless the client ends it. */
export interface SessionClaim {
  /** Of resource and id. */
  readonly key: string
  readonly expiry: ClaimExpiry
  /** The calls of the engine for this claim. */
  readonly calls: CallQueue
  isAlive(now: number): boolean
  /** The engine does not want it any more. */
  abandon(): void
  /** Leaves the line. false: it was not there any more. */
  leave(): Promise<boolean>
  /** It was removed by others, or with its session. Tells the client. */
  lose(): void
}

type MakeClaim<C> = (request: ClaimRequest, key: string, now: number) => C

/** A node that could not be removed may block its line until then. */
const CLEAN_AGAIN_MS = 1000

/**
 * The claims of one client, where the store knows only sessions. Removes those that expire, and
 * retries removals that fail.
 */
export class ClaimTable<C extends SessionClaim> {
  readonly #env: Env
  readonly #make: MakeClaim<C>
  /** By resource and id. */
  readonly #claims = new Map<string, C>()
  /** Not wanted any more, but their nodes may still exist. */
  readonly #leftovers = new Set<C>()
  readonly #onCleaned: () => void
  readonly #cleanAgainMs: number
  #isOver = false
  #cancelCleaning: Cancel | null = null
  #cancelTimer: Cancel = () => {}
  #timerAt = Infinity

  /**
   * `onCleaned` is called whenever the last leftover was removed. `cleanAgainMs`: how long after a
   * failure removals are retried.
   */
  constructor(env: Env, make: MakeClaim<C>, onCleaned: () => void, cleanAgainMs = CLEAN_AGAIN_MS) {
    this.#env = env
    this.#make = make
    this.#onCleaned = onCleaned
    this.#cleanAgainMs = cleanAgainMs
  }

  get(resource: string, id: string): C | undefined {
    return this.#claims.get(keyOf(resource, id))
  }

  has(claim: C): boolean {
    return this.#claims.get(claim.key) === claim
  }

  [Symbol.iterator](): Iterator<C> {
    return this.#claims.values()
  }

  get hasLeftovers(): boolean {
    return this.#leftovers.size > 0
  }

  /** The claim of that id, or a new one if it is gone. */
  open(request: ClaimRequest, now: number): C {
    const key = keyOf(request.resource, request.id)
    const known = this.#claims.get(key)
    if (known?.isAlive(now)) return known
    const claim = this.#make(request, key, now)
    if (known) this.abandon(known)
    this.#claims.set(key, claim)
    return claim
  }

  delete(claim: C): void {
    if (this.has(claim)) this.#claims.delete(claim.key)
  }

  /** The claim's expiry has changed. */
  schedule({ expiry }: C): void {
    this.#setTimer(expiry.at)
  }

  /** Removes claims that were not renewed: their nodes would last as long as the session. */
  dropExpired(): void {
    const now = this.#env.now()
    this.cancelTimer()
    let next = Infinity
    for (const claim of this) {
      if (claim.expiry.at > now) next = Math.min(next, claim.expiry.at)
      else {
        this.delete(claim)
        this.abandon(claim)
      }
    }
    this.#setTimer(next)
  }

  cancelTimer(): void {
    this.#cancelTimer()
    this.#timerAt = Infinity
  }

  /** The engine does not want the claim any more: removes its node. */
  abandon(claim: C): void {
    claim.abandon()
    this.#leftovers.add(claim)
    this.#remove(claim)
  }

  /** Its removal has failed, and is to be retried, whether the engine repeats it or not. */
  addLeftover(claim: C): void {
    this.#leftovers.add(claim)
    this.#cleanLater()
  }

  /** Retries the removals that have failed. */
  clean(): void {
    for (const claim of this.#leftovers) this.#remove(claim)
  }

  /** All claims leave their lines, as far as the servers can be reached. */
  async leaveAll(): Promise<void> {
    const leaving = [...this].map((claim) =>
      claim.calls.run(() => claim.leave()).catch(() => this.addLeftover(claim)),
    )
    await Promise.all(leaving)
  }

  /** The session has ended, and all nodes with it. */
  loseAll(): void {
    // Those that could not be removed, too: they let go of what they use of their lines.
    for (const claim of [...this.#leftovers, ...this]) claim.lose()
    this.#leftovers.clear()
    this.#claims.clear()
  }

  clear(): void {
    this.#claims.clear()
  }

  /** The session is about to end, and all nodes with it. */
  stopCleaning(): void {
    this.#isOver = true
    this.#leftovers.clear()
    this.#cancelCleaning?.()
  }

  #setTimer(at: number): void {
    if (at >= this.#timerAt) return
    this.#cancelTimer()
    this.#timerAt = at
    const env = this.#env
    this.#cancelTimer = env.timer(at - env.now(), () => this.dropExpired(), { keepAlive: false })
  }

  #remove(claim: C): void {
    claim.calls
      .run(() => claim.leave())
      .then(
        () => this.#cleaned(claim),
        () => this.#cleanLater(),
      )
  }

  #cleanLater(): void {
    if (this.#isOver || this.#cancelCleaning || this.#leftovers.size === 0) return
    const clean = (): void => {
      this.#cancelCleaning = null
      this.clean()
    }
    this.#cancelCleaning = this.#env.timer(this.#cleanAgainMs, clean, { keepAlive: false })
  }

  #cleaned(claim: C): void {
    this.#leftovers.delete(claim)
    if (this.#leftovers.size === 0) this.#onCleaned()
  }
}

function keyOf(resource: string, id: string): string {
  return `${id.length} ${id}${resource}`
}
