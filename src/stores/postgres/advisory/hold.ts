/// <reference lib="esnext.disposable" preserve="true" />
import { HoldfastError } from '../../../base/errors.js'

/** An advisory lock that is held: until it is released, or its session ends. */
export class AdvisoryHold implements AsyncDisposable {
  /** What was asked for. */
  readonly resource: string | bigint
  /** Its key, as `pg_advisory_lock(bigint)` and `pg_locks` know it. */
  readonly key: bigint
  /** Greater than that of every earlier hold of the same key. Hand it to whatever checks fences. */
  readonly fence: number
  readonly #controller = new AbortController()
  readonly #giveBack: () => Promise<boolean>
  #released: Promise<boolean> | null = null

  /** @internal */
  constructor(resource: string | bigint, key: string, fence: number, giveBack: () => Promise<boolean>) {
    this.resource = resource
    this.key = BigInt(key)
    this.fence = fence
    this.#giveBack = giveBack
  }

  /** Aborts when the hold is lost with its connection, with a HOLD_LOST error as its reason. A release does not abort it. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Whether it is neither released nor known to be lost. There is no lease: between the death of a connection and the news of it this is true. */
  get isValid(): boolean {
    return this.#released === null && !this.signal.aborted
  }

  /** Gives the lock back; says whether it was still held. Safe to call twice. */
  release(): Promise<boolean> {
    this.#released ??= this.signal.aborted ? Promise.resolve(false) : this.#giveBack()
    return this.#released
  }

  /** Lets `await using` release it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  /** @internal */
  lose(cause: Error): void {
    const message = `The advisory lock '${this.resource}' was lost: its connection has ended`
    this.#controller.abort(new HoldfastError('HOLD_LOST', message, { store: 'postgres', cause }))
  }
}
