import { firstOf } from '../base/abort.js'
import type { Cancel, Env } from '../base/env.js'
import { HoldfastError } from '../base/errors.js'
import { nothing } from '../base/nothing.js'
import { driftMs } from '../contract/validity.js'
import type { MultiHold } from '../primitives/multi-hold.js'

/** If less than this part of the duration is left at the grant, the full duration is asked for. */
const ENOUGH = 0.95
/** The least pause between two extensions, as a part of the duration. */
const LEAST_PAUSE = 0.05
/** A difference that has no meaning: timers and round trips take longer. */
const SLACK_MS = 2

/** The holds behind a lock, and behind all that `extend` made of it. */
export class HeldResources {
  readonly #env: Env
  readonly #hold: MultiHold
  readonly #ended = new AbortController()
  #signal: AbortSignal | null = null
  #cancelEnd: Cancel = nothing
  #isReleased = false
  /** It was shortened, and its time is over. */
  #isOver = false

  constructor(env: Env, hold: MultiHold) {
    this.#env = env
    this.#hold = hold
  }

  /** How many resources it has, each counted once. */
  get size(): number {
    return this.#hold.holds.length
  }

  get fences(): ReadonlyMap<string, number> {
    return this.#hold.fences
  }

  /** Aborts when one of the holds is lost, or the time of the lock is over. */
  get signal(): AbortSignal {
    this.#signal ??= firstOf([this.#hold.signal, this.#ended.signal]).signal
    return this.#signal
  }

  /** Whether it was given back. */
  get isReleased(): boolean {
    return this.#isReleased
  }

  get remainingMs(): number {
    return this.#hold.remainingMs
  }

  /**
   * A hold that was handed over, or waited for others, has lasted for a while: gives it the whole
   * duration.
   */
  async fill(durationMs: number): Promise<void> {
    if (this.remainingMs < usableMs(durationMs) * ENOUGH) await this.extend(durationMs)
  }

  /** Lasts `durationMs` from now, whether that is more or less than before. */
  async extend(durationMs: number): Promise<void> {
    if (this.#isReleased || this.#isOver) throw over(this.#hold.resources)
    await this.#hold.extend(usableMs(durationMs))
    this.#cancelEnd()
    // The store never shortens a hold: a shorter one is given back at its end.
    if (this.remainingMs > usableMs(durationMs) + SLACK_MS)
      this.#cancelEnd = this.#env.timer(usableMs(durationMs), () => this.#end(), { keepAlive: false })
  }

  /**
   * Extends it whenever less than `thresholdMs` is left, beside its renewals. The returned function
   * ends this.
   */
  keepAbove(thresholdMs: number, durationMs: number): () => void {
    let isOver = false
    let cancel: Cancel = nothing
    const look = async (): Promise<void> => {
      // If it fails, the lock is lost, which its signal tells. Or the server does not answer: then
      // the next attempt may succeed.
      if (this.remainingMs <= thresholdMs) await this.extend(durationMs).catch(nothing)
      if (!isOver && this.remainingMs > 0) plan()
    }
    const plan = (): void => {
      // A threshold close to the duration must not keep the server busy.
      const inMs = Math.max(this.remainingMs - thresholdMs, durationMs * LEAST_PAUSE)
      cancel = this.#env.timer(inMs, () => void look(), { keepAlive: false })
    }
    plan()
    return () => {
      isOver = true
      cancel()
    }
  }

  /** From now on it ends by itself, unless it is extended. */
  letLapse(): void {
    for (const hold of this.#hold.holds) hold.letLapse()
  }

  /** Gives all back. Tells how many of them were still held. */
  async release(): Promise<number> {
    this.#cancelEnd()
    if (this.#isReleased) return 0
    // Before anything is sent: of two calls at once, one releases.
    this.#isReleased = true
    if (this.#isOver) return 0
    const outcomes = await Promise.allSettled(this.#hold.holds.map((hold) => hold.release()))
    const failure = outcomes.find((outcome) => outcome.status === 'rejected')
    if (failure) {
      // A further call is told the same.
      this.#isReleased = false
      throw failure.reason
    }
    return outcomes.filter((outcome) => outcome.status === 'fulfilled' && outcome.value).length
  }

  #end(): void {
    this.#isOver = true
    void this.#hold.release().catch(nothing)
    this.#ended.abort(over(this.#hold.resources))
  }
}

/** How much of a duration the holder may rely on. */
export function usableMs(durationMs: number): number {
  return durationMs - driftMs(durationMs)
}

function over(resources: readonly string[]): HoldfastError {
  const names = resources.map((name) => `'${name}'`).join(', ')
  return new HoldfastError(
    'HOLD_LOST',
    `The lock of ${names} is over: it was released, or its time has passed`,
  )
}
