/// <reference lib="esnext.disposable" preserve="true" />
import { firstOf } from '../base/abort.js'
import type { Duration } from '../base/duration.js'
import type { Hold } from './hold.js'

/** The holds of several resources as one: valid as long as all of them are. */
export class MultiHold implements AsyncDisposable {
  readonly #holds: readonly Hold[]
  #signal: AbortSignal | null = null
  #released: Promise<boolean> | null = null

  /** @internal Made by `all`. */
  constructor(holds: readonly Hold[]) {
    this.#holds = holds
  }

  /** The names of what is held, in order. */
  get resources(): string[] {
    return this.#holds.map((hold) => hold.resource)
  }

  /** The fence of each name. Each resource checks its own. */
  get fences(): ReadonlyMap<string, number> {
    return new Map(this.#holds.map((hold) => [hold.resource, hold.fence]))
  }

  /** The single holds, in the order of their names, for guards that take a hold. */
  get holds(): readonly Hold[] {
    return this.#holds
  }

  /** Whether you can trust all of them now. */
  get isValid(): boolean {
    return this.#holds.every((hold) => hold.isValid)
  }

  /** How long you can trust all of them if nothing renews them. */
  get remainingMs(): number {
    return this.#holds.reduce((least, hold) => Math.min(least, hold.remainingMs), Infinity)
  }

  /** Aborts when one of them is lost, with a HOLD_LOST error as its reason. */
  get signal(): AbortSignal {
    this.#signal ??= firstOf(this.#holds.map((hold) => hold.signal)).signal
    return this.#signal
  }

  /** Makes all of them last at least `duration` from now. */
  async extend(duration: Duration): Promise<void> {
    await Promise.all(this.#holds.map((hold) => hold.extend(duration)))
  }

  /**
   * Gives all of them back, even if one fails: its error is thrown when all are done. Resolves with
   * false if one had been lost.
   */
  release(): Promise<boolean> {
    this.#released ??= this.#release()
    return this.#released
  }

  async #release(): Promise<boolean> {
    const outcomes = await Promise.allSettled(this.#holds.map((hold) => hold.release()))
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
    return outcomes.every((outcome) => outcome.status === 'fulfilled' && outcome.value)
  }

  /** For `await using`: releases. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }
}
