import type { Hold } from '../../src/primitives/hold.js'
import type { Holdfast } from '../../src/primitives/holdfast.js'
import { eventually, now, pass } from '../../src/testing/conformance/checks.js'
import { Judge } from './judge.js'

export interface CrowdOptions {
  /** Each has every resource on its list. */
  clients: readonly Holdfast[]
  resources: readonly string[]
  /** How long a hold outlives its process. */
  leaseMs: number
  /** What they ask for, where the store's session decides about that. */
  askedLeaseMs?: number
}

/**
 * Most holds are over before they need a renewal; now and then a hold of one of these clients lasts
 * for several.
 */
const LONGEST_SHORT_HOLD_MS = 6
const LONG_HOLDERS = [0, 3]
const LONG_HOLD_LEASES = 1.2
const LONG_HOLD_EVERY_LEASES = 4
/**
 * The longest pause before a repetition, of the engine, of the connection for messages, and of the
 * drivers' reconnecting.
 */
const LONGEST_BACK_OFF_MS = 1000
/**
 * A claim, its message and its release on a machine that is busy with everything else in this run.
 */
const ROUND_TRIPS_MS = 150

/** Clients that contend for the same mutexes without a pause, and the judge who looks on. */
export class Crowd {
  readonly judge: Judge
  readonly #options: CrowdOptions
  readonly #loops: Promise<void>[] = []
  #isOver = false

  constructor(options: CrowdOptions) {
    this.#options = options
    this.judge = new Judge()
    for (const [index, client] of options.clients.entries())
      for (const resource of options.resources) this.#loops.push(this.#contend(index, client, resource))
  }

  /** Resolves when so many more grants have been made, in all. */
  async granted(count: number): Promise<void> {
    const wanted = this.judge.grants.length + count
    await eventually(`${count} more grants`, () => this.judge.grants.length >= wanted, 60_000)
  }

  /**
   * To be called when a fault is over: resolves when everybody has been granted every resource
   * since. Fails where somebody is stranded, and where it takes longer than the lease of a lost
   * holder, the longest pause, and everybody's turn, on a machine that has time for it.
   */
  async recovered(extraMs = 0): Promise<void> {
    // In this order: what passes in between belongs to the lateness, or to neither.
    const [lateMs, healedAt] = [this.judge.lateness.totalMs, now()]
    await eventually('a grant for everybody', () => this.#waiting(healedAt).length === 0, 60_000).catch(
      (error: Error) => {
        throw new Error(`${error.message}; stranded: ${this.#waiting(healedAt).join(', ')}`)
      },
    )
    this.judge.recoveries.push({
      tookMs: Math.round(now() - healedAt),
      boundMs: Math.round(this.#boundMs() + extraMs + this.judge.lateness.totalMs - lateMs),
    })
    await this.granted(30)
  }

  /** Lets everybody finish, and closes the clients. */
  async end(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#loops)
    await Promise.all(this.#options.clients.map((client) => client.close({ drain: 0 })))
    this.judge.lateness.stop()
  }

  #boundMs(): number {
    const { clients, leaseMs } = this.#options
    const turnMs = LONGEST_SHORT_HOLD_MS + ROUND_TRIPS_MS
    const longMs = LONG_HOLDERS.length * LONG_HOLD_LEASES * leaseMs
    return leaseMs + LONGEST_BACK_OFF_MS + clients.length * turnMs + longMs
  }

  #waiting(since: number): string[] {
    const { clients, resources } = this.#options
    return [...clients.keys()]
      .flatMap((client) => resources.map((resource) => ({ client, resource })))
      .filter(({ client, resource }) => this.judge.lastGrant(client, resource) <= since)
      .map(({ client, resource }) => `client ${client} for ${resource}`)
  }

  async #contend(index: number, client: Holdfast, resource: string): Promise<void> {
    const { leaseMs, askedLeaseMs = leaseMs } = this.#options
    let longHoldAt = now() + Math.random() * LONG_HOLD_EVERY_LEASES * leaseMs
    while (!this.#isOver) {
      const askedAt = now()
      try {
        const hold = await client.mutex(resource).acquire({ lease: askedLeaseMs })
        const isLong = LONG_HOLDERS.includes(index) && now() >= longHoldAt
        if (isLong) longHoldAt = now() + LONG_HOLD_EVERY_LEASES * leaseMs
        await this.#work(index, hold, askedAt, isLong)
      } catch (error) {
        this.judge.failed(error)
        await pass(10)
      }
    }
  }

  async #work(client: number, hold: Hold, askedAt: number, isLong: boolean): Promise<void> {
    const { leaseMs } = this.#options
    const watched = this.judge.granted(client, hold, askedAt)
    const holdMs = isLong ? LONG_HOLD_LEASES * leaseMs : Math.random() * LONGEST_SHORT_HOLD_MS
    const until = now() + holdMs
    while (now() < until && hold.isValid && !this.#isOver) {
      await pass(3)
      watched.look()
    }
    watched.end()
    if (hold.isValid) await hold.release()
    else await watched.reported()
  }
}
