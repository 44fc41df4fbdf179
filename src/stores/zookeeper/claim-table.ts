import type { Cancel } from '../../base/env.js'
import type { ClaimRequest } from '../../contract/store.js'
import { LineClaim } from './claim.js'
import type { ZooKeeperSpace } from './space.js'

/** The claims of one client. Removes those that expire, and retries removals that fail. */
export class ClaimTable {
  readonly #space: ZooKeeperSpace
  /** By resource and id. */
  readonly #claims = new Map<string, LineClaim>()
  /** Not wanted any more, but their nodes may still exist. */
  readonly #leftovers = new Set<LineClaim>()
  readonly #onCleaned: () => void
  #cancelTimer: Cancel = () => {}
  #timerAt = Infinity

  /** `onCleaned` is called whenever the last leftover was removed. */
  constructor(space: ZooKeeperSpace, onCleaned: () => void) {
    this.#space = space
    this.#onCleaned = onCleaned
  }

  get(resource: string, id: string): LineClaim | undefined {
    return this.#claims.get(keyOf(resource, id))
  }

  has(claim: LineClaim): boolean {
    return this.#claims.get(claim.key) === claim
  }

  [Symbol.iterator](): Iterator<LineClaim> {
    return this.#claims.values()
  }

  get hasLeftovers(): boolean {
    return this.#leftovers.size > 0
  }

  /** The claim of that id, or a new one if it is gone. */
  open(request: ClaimRequest, now: number): LineClaim {
    const key = keyOf(request.resource, request.id)
    const known = this.#claims.get(key)
    if (known?.isAlive(now)) return known
    const claim = new LineClaim(this.#space, request, key, now)
    if (known) this.abandon(known)
    this.#claims.set(key, claim)
    return claim
  }

  delete(claim: LineClaim): void {
    if (this.has(claim)) this.#claims.delete(claim.key)
  }

  /** The claim's expiry has changed. */
  schedule({ expiry }: LineClaim): void {
    this.#setTimer(expiry.at)
  }

  /** Removes claims that were not renewed: their nodes would last as long as the session. */
  dropExpired(): void {
    const now = this.#space.env.now()
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
  abandon(claim: LineClaim): void {
    claim.abandon()
    this.#leftovers.add(claim)
    this.clean()
  }

  /** Its removal has failed, and is to be retried, whether the engine repeats it or not. */
  addLeftover(claim: LineClaim): void {
    this.#leftovers.add(claim)
  }

  /** Retries the removals that have failed. */
  clean(): void {
    for (const claim of this.#leftovers) {
      claim.calls
        .run(() => claim.leave())
        .then(
          () => this.#cleaned(claim),
          () => {},
        )
    }
  }

  /** All claims leave their lines, as far as the servers can be reached. */
  async leaveAll(): Promise<void> {
    const leaving = [...this].map((claim) =>
      claim.calls.run(() => claim.leave()).catch(() => this.#leftovers.add(claim)),
    )
    await Promise.all(leaving)
  }

  /** The session has ended, and all nodes with it. */
  loseAll(): void {
    this.#leftovers.clear()
    for (const claim of this) claim.lose()
    this.#claims.clear()
  }

  clear(): void {
    this.#claims.clear()
  }

  #setTimer(at: number): void {
    if (at >= this.#timerAt) return
    this.#cancelTimer()
    this.#timerAt = at
    const { env } = this.#space
    this.#cancelTimer = env.timer(at - env.now(), () => this.dropExpired(), { keepAlive: false })
  }

  #cleaned(claim: LineClaim): void {
    this.#leftovers.delete(claim)
    if (this.#leftovers.size === 0) this.#onCleaned()
  }
}

function keyOf(resource: string, id: string): string {
  return `${id.length} ${id}${resource}`
}
