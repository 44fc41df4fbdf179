import { firstOf } from '../base/abort.js'
import type { Duration } from '../base/duration.js'
import { HoldfastError, invalid } from '../base/errors.js'
import { checkName } from '../base/names.js'
import type { OptionNames } from '../base/options.js'
import { type Limits, limitsLeft, waitTimeout } from '../calls/limits.js'
import type { Request } from '../engine/request.js'
import type { Update } from '../states/states.js'
import { Hold } from './hold.js'
import { WAIT_OPTIONS, type WaitOptions } from './latch.js'
import { checkCounting, limits, requestSpec } from './options.js'
import { type LockContext, released } from './reentry.js'

/** The options of `meet`. */
export interface MeetOptions extends WaitOptions {
  /** How long a party without a heartbeat still counts as arrived. Default `'30s'`. */
  lease?: Duration | undefined
  /** A note for people, shown by `holdfast ls` and `inspect()`. */
  label?: string | undefined
}

const MEET_OPTIONS: OptionNames<MeetOptions> = { lease: true, label: true, ...WAIT_OPTIONS }

/** The state of a barrier in the store. */
interface BarrierState {
  /**
   * The fences of the parties that have arrived, each written by its own party. A claim alone
   * proves nothing: it may be a duplicate that the network delivered late.
   */
  readonly here: readonly number[]
  /**
   * The fences of the last round and of some before it. A party whose arrival has lapsed can see
   * whether it was counted or replaced.
   */
  readonly met: readonly number[]
}

/** A party that has arrived. */
interface Arrival {
  readonly request: Request
  readonly hold: Hold
}

const MOST_PARTIES = 10_000
/** How many fences are remembered; always at least the last round. */
const REMEMBERED = 256
const RETENTION_MS = 30 * 86_400_000

/**
 * A place where a number of parties wait for each other, round after round. An arrival is a leased
 * claim: if a party dies while it waits, its claim lapses, and another can take its place.
 * Additional parties wait for the next round.
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
    if (!Number.isSafeInteger(parties) || parties < 1 || parties > MOST_PARTIES)
      throw invalid(`A barrier has from 1 to ${MOST_PARTIES} parties`, name)
    checkCounting(context.engine, name)
    this.parties = parties
  }

  /**
   * Arrives, and waits until all parties are there. Throws ACQUIRE_TIMEOUT when the wait is over,
   * ABORTED when the signal aborts. The arrival is then undone, unless the others have met with it
   * in the meantime: then it resolves after all.
   */
  async meet(options: MeetOptions = {}): Promise<void> {
    const wait = limits(options, MEET_OPTIONS)
    const { env } = this.#context.engine
    const deadline = env.now() + wait.waitMs
    const left = (): Limits => limitsLeft(wait, deadline, env.now())
    // A party that could not keep its arrival alive arrives again.
    while (!(await this.#meetOnce(options, left, wait.waitMs)));
  }

  /** How many parties have arrived and wait for the others. */
  async arrived(): Promise<number> {
    const { here } = parse(await this.#context.engine.states.read(this.#key))
    return (await this.#alive(here)).length
  }

  /** false: the arrival was lost before all parties were there. */
  async #meetOnce(options: MeetOptions, left: () => Limits, waitMs: number): Promise<boolean> {
    const arrival = await this.#arrive(options, left())
    if (!arrival) throw waitTimeout(this.#what, waitMs)
    const { hold } = arrival
    try {
      await this.#signIn(hold.fence)
      await this.#untilMet(hold, left())
      await released(this.#context.engine, () => hold.release())
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
    const kind = {
      resource: this.#key,
      permits: 1,
      capacity: this.parties,
      isReentrant: false,
      primitive: 'barrier',
    } as const
    const options = { ...(lease === undefined ? {} : { lease }), ...(label === undefined ? {} : { label }) }
    try {
      const entry = await engine.acquire(requestSpec(kind, options, presenceMs), wait)
      return entry && { request: entry.request, hold: new Hold(engine, entry) }
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error
      if (error.code === 'CAPACITY_MISMATCH') throw this.#mismatch(error)
      // Some parties of the last round have not left yet.
      if (error.code === 'ACQUIRE_TIMEOUT') return null
      throw error
    }
  }

  /** Records the arrival. The last party checks that all are there, and still alive. */
  async #signIn(fence: number): Promise<void> {
    await this.#context.engine.states.update(this.#key, async (value) => {
      const { here, met } = parse(value)
      if (here.includes(fence) || met.includes(fence)) return null
      const all = [...here, fence]
      if (all.length < this.parties) return written({ here: all, met })
      const alive = await this.#alive(all)
      if (alive.length < this.parties) return written({ here: alive, met })
      return written({ here: [], met: [...met, ...alive].slice(-Math.max(REMEMBERED, alive.length)) })
    })
  }

  async #untilMet(hold: Hold, wait: Limits): Promise<void> {
    const { signal, stop } = firstOf(wait.signal ? [wait.signal, hold.signal] : [hold.signal])
    const isMet = (value: string | null): boolean => parse(value).met.includes(hold.fence)
    try {
      await this.#context.engine.states.until(this.#key, isMet, { ...wait, signal }, this.#what)
    } finally {
      stop()
    }
  }

  /**
   * Undoes an arrival, and tells whether all have met, in one update: a party that is just counting
   * then finds the state changed.
   */
  async #withdraw({ request: { lease }, hold }: Arrival): Promise<boolean> {
    const { engine } = this.#context
    const signOut = (value: string | null): Update | null => {
      const { here, met } = parse(value)
      if (!here.includes(hold.fence)) return null
      return written({ here: here.filter((fence) => fence !== hold.fence), met })
    }
    // A hold that is lost here may still occupy a place in the store.
    const leave = async (): Promise<void> => {
      const wasHeld = await hold.release().catch(() => false)
      if (!wasHeld && lease) await engine.withdraw(lease)
    }
    // The state decides for the others, even if the release fails. Where the store is unreachable,
    // the arrival lapses with its lease, and the caller gets the first error.
    const signedOut = engine.states.update(this.#key, signOut).catch(() => null)
    const [after] = await Promise.all([signedOut, released(engine, leave)])
    return parse(after).met.includes(hold.fence)
  }

  /** The fences whose claims are still in the line. */
  async #alive(fences: readonly number[]): Promise<number[]> {
    const line = await this.#context.operator.line(this.#key)
    return fences.filter((fence) => line?.claims.some((claim) => claim.fence === fence))
  }

  #mismatch(cause: HoldfastError): HoldfastError {
    const message = `The barrier '${this.name}' is in use with a number of parties other than ${this.parties}; use the same number everywhere`
    return new HoldfastError('CAPACITY_MISMATCH', message, { resource: this.name, cause })
  }

  get #what(): { kind: string; name: string } {
    return { kind: 'barrier', name: this.name }
  }
}

function parse(value: string | null): BarrierState {
  return value === null ? { here: [], met: [] } : (JSON.parse(value) as BarrierState)
}

function written(state: BarrierState): Update {
  return { value: JSON.stringify(state), retentionMs: RETENTION_MS }
}
