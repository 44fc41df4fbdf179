/// <reference lib="esnext.disposable" preserve="true" />
import { HoldfastError } from '../../base/errors.js'

/** What a session lock is granted with. */
export interface SessionGrant {
  readonly store: string
  readonly fence: number
  /** Resolves with whether the lock was still held. */
  release(): Promise<boolean>
}

/** A lock that a session holds: until it is released, or its connection ends. It has no lease. */
export abstract class SessionBoundHold<Name extends string | bigint> implements AsyncDisposable {
  /** The name that was locked. */
  readonly resource: Name
  /**
   * Greater than the fence of every earlier hold of this lock that Holdfast granted. Pass it to the
   * guard that checks fences.
   */
  readonly fence: number
  readonly #grant: SessionGrant
  readonly #controller = new AbortController()
  #released: Promise<boolean> | undefined

  /** @internal */
  constructor(resource: Name, grant: SessionGrant) {
    this.resource = resource
    this.fence = grant.fence
    this.#grant = grant
  }

  /**
   * Whether it is neither released nor known to be lost. Between the death of a connection and the
   * moment at which the client learns of it this is true.
   */
  get isValid(): boolean {
    return this.#released === undefined && !this.signal.aborted
  }

  /**
   * Aborts when the hold is lost with its connection, with a HOLD_LOST error as its reason. A
   * release does not abort it.
   */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Releases the lock. Resolves with whether it was still held. Safe to call twice. */
  release(): Promise<boolean> {
    this.#released ??= this.signal.aborted ? Promise.resolve(false) : this.#grant.release()
    return this.#released
  }

  /** Lets `await using` release it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  /** @internal */
  lose(cause: Error): void {
    if (this.#released) return
    const resource = String(this.resource)
    const message = `The lock '${resource}' was lost: its connection has ended`
    const details = { resource, store: this.#grant.store, cause }
    this.#controller.abort(new HoldfastError('HOLD_LOST', message, details))
  }
}
