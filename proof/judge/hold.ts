import type { AcquireRecord, EndRecord, HistoryRecord, LockKind } from '../history.js'

/** A hold whose acquisition was answered, and when it can have begun and ended. */
export class JudgedHold {
  readonly acquired: AcquireRecord
  readonly ended: EndRecord | undefined
  /** It began at this time at the latest. */
  readonly to: number
  /** It ended at this time at the earliest: the holder was sure of it until then. */
  readonly endsFrom: number

  constructor(acquired: AcquireRecord, to: number, ended: EndRecord | undefined) {
    this.acquired = acquired
    this.ended = ended
    this.to = to
    this.endsFrom = ended ? Math.max(acquired.from, ended.from) : to
  }

  get name(): string {
    return this.acquired.hold
  }

  get kind(): LockKind {
    return this.acquired.kind
  }

  get isExclusive(): boolean {
    return this.kind === 'mutex' || this.kind === 'write'
  }

  get permits(): number {
    return this.acquired.permits ?? 1
  }

  /** It ended at this time at the latest: a lease that nobody renews is over within `patience`. */
  endsBy(patience: number): number {
    return this.ended?.to ?? Math.max(this.endsFrom, this.to) + patience
  }

  get records(): HistoryRecord[] {
    return this.ended ? [this.acquired, this.ended] : [this.acquired]
  }
}
