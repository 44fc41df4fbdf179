import type { Hold } from '../../src/primitives/hold.js'
import { now } from '../../src/testing/conformance/checks.js'
import type { AcquireRecord, HistoryRecord, LockKind } from '../history.js'

/** Writes down what happens in a scenario. */
export class Recording {
  readonly records: HistoryRecord[] = []
  #holds = 0

  /** Takes a lock; null: it was not granted. */
  async acquire(
    lock: string,
    kind: LockKind,
    ask: () => Promise<Hold | null>,
    count: { permits?: number; capacity?: number } = {},
  ): Promise<RecordedHold | null> {
    const from = Math.floor(now() * 1000)
    const hold = await ask()
    const to = Math.ceil(now() * 1000)
    if (!hold) return null
    const name = this.#name()
    this.records.push({ type: 'acquire', lock, kind, ...count, hold: name, from, to, fence: hold.fence })
    return new RecordedHold(this, hold, name, to)
  }

  /** A request that is not served, and waits since `from`. */
  stillWaits(lock: string, kind: LockKind, from: number): void {
    const waitedUntil = Math.floor(now() * 1000)
    const waiter: AcquireRecord = {
      type: 'acquire',
      lock,
      kind,
      hold: this.#name(),
      from,
      to: null,
      fence: null,
      waitedUntil,
    }
    this.records.push(waiter)
  }

  /** One document per line. */
  get text(): string {
    return this.records.map((record) => `${JSON.stringify(record)}\n`).join('')
  }

  #name(): string {
    return `0/${++this.#holds}`
  }
}

export class RecordedHold {
  readonly #recording: Recording
  readonly #name: string
  #seenAt: number

  constructor(
    recording: Recording,
    readonly hold: Hold,
    name: string,
    grantedAt: number,
  ) {
    this.#recording = recording
    this.#name = name
    this.#seenAt = grantedAt
  }

  /** The holder looks whether it can trust the hold. */
  look(): boolean {
    // Before the look: what is valid then was valid before.
    const at = Math.floor(now() * 1000)
    if (!this.hold.isValid) return false
    this.#seenAt = Math.max(this.#seenAt, at)
    return true
  }

  async release(): Promise<void> {
    const from = Math.floor(now() * 1000)
    const isReleased = await this.hold.release().catch(() => false)
    if (isReleased) this.#end(from, Math.ceil(now() * 1000))
    else this.#end(this.#seenAt, null)
  }

  #end(from: number, to: number | null): void {
    this.#recording.records.push({ type: 'end', hold: this.#name, from, to })
  }
}
