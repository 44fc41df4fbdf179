import type { Duration } from '../base/duration.js'
import { HoldfastError, invalid } from '../base/errors.js'
import { checkName } from '../base/names.js'
import type { Claim } from '../engine/claim.js'
import { Hold } from '../engine/hold.js'
import { type Limits, limitsLeft, waitTimeout } from '../engine/limits.js'
import type { LockContext } from './entrance.js'
import type { WaitOptions } from './latch.js'
import { claimSpec, limits } from './options.js'

/** What `meet` can be told. */
export interface MeetOptions extends WaitOptions {
  /** How long a party that fell silent still counts as arrived. Default `'30s'`. */
  lease?: Duration
  /** For people who look at the line, in `holdfast ls` or `inspect()`. */
  label?: string
}

/** What is kept of a barrier: everybody whose arrival has a fence up to this one has met. */
interface BarrierState {
  readonly through: number
}

/** A party that has arrived. */
interface Arrival {
  readonly claim: Claim
  readonly hold: Hold
}

const RETENTION_MS = 30 * 86_400_000

/**
 * A place where so many parties wait for each other, again and again. An arrival is a leased claim: that of a party that dies
 * while it waits lapses, and another can come in its place. Parties beyond the number wait for the next round.
 *
 * @example
 * ```ts
 * import { Holdfast } from 'holdfast'
 * import { memory } from 'holdfast/memory'
 *
 * const phase = new Holdfast(memory()).barrier('phase', 2)
 * await Promise.all([phase.meet({ wait: '1m' }), phase.meet({ wait: '1m' })])
 * ```
 */
export class Barrier {
  readonly #context: LockContext
  readonly #key: string
  /** The name of the barrier. */
  readonly name: string
  /** How many have to arrive. */
  readonly parties: number

  /** Made by `locks.barrier(name, parties)`. */
  constructor(context: LockContext, name: string, parties: number) {
    this.#context = context
    this.name = checkName(name, 'The name of a barrier')
    this.#key = checkName(`barrier:${name}`, 'The name of a barrier')
    if (!Number.isSafeInteger(parties) || parties < 1 || parties > 1_000_000)
      throw invalid('A barrier has from 1 to 1000000 parties', name)
    this.parties = parties
  }

  /**
   * Arrives, and waits until all parties are there. Throws ACQUIRE_TIMEOUT when the wait is over, ABORTED when the signal aborts;
   * the arrival is then undone, unless the others have met with it in the meantime: then it resolves after all.
   */
  async meet(options: MeetOptions = {}): Promise<void> {
    const wait = limits(options)
    const { env } = this.#context.engine
    const deadline = env.now() + wait.waitMs
    // Whoever was too slow to keep its arrival alive arrives anew.
    while (!(await this.#meetOnce(options, limitsLeft(wait, deadline, env.now()), wait.waitMs)));
  }

  /** How many have arrived and wait for the others. */
  async arrived(): Promise<number> {
    const { through } = parse(await this.#context.engine.states.read(this.#key))
    return (await this.#arrivals(through)).length
  }

  /** false: the arrival was lost before everybody was there. */
  async #meetOnce(options: MeetOptions, wait: Limits, waitMs: number): Promise<boolean> {
    const arrival = await this.#arrive(options, wait)
    if (!arrival) throw waitTimeout(this.#what, waitMs)
    const { hold } = arrival
    try {
      await this.#completeIfLast(hold.fence)
      await this.#untilMet(hold, wait)
      await hold.release().catch(() => {})
      return true
    } catch (error) {
      const wasLost = hold.signal.aborted
      if (await this.#withdraw(arrival)) return true
      if (wasLost) return false
      throw error
    }
  }

  async #arrive({ lease, label }: MeetOptions, wait: Limits): Promise<Arrival | null> {
    const { engine, presenceMs } = this.#context
    const kind = { resource: this.#key, permits: 1, capacity: this.parties, isReentrant: false }
    const options = { ...(lease === undefined ? {} : { lease }), ...(label === undefined ? {} : { label }) }
    try {
      const entry = await engine.acquire(claimSpec(kind, options, presenceMs), wait)
      return entry && { claim: entry.claim, hold: new Hold(engine, entry) }
    } catch (error) {
      if (error instanceof HoldfastError && error.code === 'CAPACITY_MISMATCH') throw this.#mismatch(error)
      throw error
    }
  }

  /** Everybody looks once, after its own arrival: so the last one to arrive sees them all. */
  async #completeIfLast(fence: number): Promise<void> {
    await this.#context.engine.states.update(this.#key, async (value) => {
      const { through } = parse(value)
      if (through >= fence) return null
      const arrivals = await this.#arrivals(through)
      return arrivals.length < this.parties ? null : written({ through: Math.max(...arrivals) })
    })
  }

  async #untilMet(hold: Hold, wait: Limits): Promise<void> {
    const signal = wait.signal ? AbortSignal.any([wait.signal, hold.signal]) : hold.signal
    const isMet = (value: string | null): boolean => parse(value).through >= hold.fence
    await this.#context.engine.states.until(this.#key, isMet, { ...wait, signal }, this.#what)
  }

  /**
   * Undoes an arrival. Its hold is given back first and the state written anew after that: whoever has just counted it either
   * wrote that all have met before, and we see it here, or finds the state changed and counts again. true: they have met.
   */
  async #withdraw({ claim, hold }: Arrival): Promise<boolean> {
    const { engine } = this.#context
    const { states } = engine
    try {
      // One that is lost for us may still be there for the store, and be counted.
      if (!(await hold.release())) await engine.withdraw(claim.resource, claim.id)
      const after = await states.update(this.#key, (value) => {
        const state = parse(value)
        return state.through >= hold.fence ? null : written(state)
      })
      return parse(after).through >= hold.fence
    } catch {
      // The store is out of reach: the arrival lapses with its lease, and the caller is told why in any case.
      return false
    }
  }

  /** The fences of those who have arrived since the last time that all met. */
  async #arrivals(through: number): Promise<number[]> {
    const line = await this.#context.engine.line(this.#key)
    const fences = line?.claims.map((claim) => claim.fence ?? 0) ?? []
    return fences.filter((fence) => fence > through)
  }

  #mismatch(cause: HoldfastError): HoldfastError {
    const message = `The barrier '${this.name}' is in use with another number of parties than ${this.parties}; use the same everywhere`
    return new HoldfastError('CAPACITY_MISMATCH', message, { resource: this.name, cause })
  }

  get #what(): { kind: string; name: string } {
    return { kind: 'barrier', name: this.name }
  }
}

function parse(value: string | null): BarrierState {
  return value === null ? { through: 0 } : (JSON.parse(value) as BarrierState)
}

function written(state: BarrierState): { value: string; retentionMs: number } {
  return { value: JSON.stringify(state), retentionMs: RETENTION_MS }
}
