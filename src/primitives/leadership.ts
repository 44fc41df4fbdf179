/// <reference lib="esnext.disposable" preserve="true" />
import type { Hold } from './hold.js'

/** A leader. */
export interface Leader {
  /** The name that the candidate gave itself. */
  readonly id: string
  /**
   * The number of the leadership, greater than that of every earlier one. It is the fence of the
   * leader's hold.
   */
  readonly term: number
}

/** An election that you won, until you lose it or resign. */
export class Leadership implements AsyncDisposable {
  /** The hold behind it, for guards that take a hold. */
  readonly hold: Hold
  /** The name that this candidate gave itself. */
  readonly id: string

  /** @internal Made by `campaign`. */
  constructor(hold: Hold, id: string) {
    this.hold = hold
    this.id = id
  }

  /**
   * The number of this leadership: the fence of its hold. Have it checked wherever the leader
   * changes something.
   */
  get term(): number {
    return this.hold.fence
  }

  /** Whether it still leads, by the clock. Correct even right after a pause of the process. */
  get isLeader(): boolean {
    return this.hold.isValid
  }

  /**
   * Aborts when the leadership is lost, with a HOLD_LOST error as its reason. Resigning does not
   * abort it.
   */
  get signal(): AbortSignal {
    return this.hold.signal
  }

  /** Lets the next candidate lead. Resolves with false if the leadership had been lost before. */
  resign(): Promise<boolean> {
    return this.hold.release()
  }

  /** For `await using`: resigns. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.resign()
  }
}
