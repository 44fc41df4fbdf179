import { Hold } from '../primitives/hold.js'
import { shapeAsInterface } from './interface.js'
import type { LockMode } from './types.js'

/** The lock that the callback of `request` gets. */
export class Lock {
  readonly #name: string
  readonly #mode: LockMode
  readonly #hold: Hold

  /** @internal Made by `LockManager.request`. */
  constructor(name: string, mode: LockMode, hold: Hold) {
    if (!(hold instanceof Hold))
      throw new TypeError('Illegal constructor: a Lock is made by LockManager.request()')
    this.#name = name
    this.#mode = mode
    this.#hold = hold
  }

  /** The name that was requested. */
  get name(): string {
    return this.#name
  }

  /** The mode that was requested. */
  get mode(): LockMode {
    return this.#mode
  }

  /**
   * Aborts when the lock is stolen or lost, with a HOLD_LOST error as its reason: stop working
   * then. Not in the specification, which tells only the caller of `request`.
   */
  get signal(): AbortSignal {
    return this.#hold.signal
  }

  /**
   * The fence of this hold: greater than that of every earlier hold of this name. Give it to the
   * guard at the resource. Not in the specification, which is about one machine.
   */
  get fence(): number {
    return this.#hold.fence
  }

  static {
    shapeAsInterface(Lock, 'Lock', ['name', 'mode', 'signal', 'fence'])
  }
}
