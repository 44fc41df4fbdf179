import type {
  AcquireRecord,
  FaultRecord,
  HistoryRecord,
  LockKind,
  ReadRecord,
  WriteRecord,
} from '../../proof/history.js'

type Span = readonly [from: number, to: number | null]

interface HeldFrom {
  readonly kind?: LockKind
  readonly fence: number
  readonly permits?: number
  readonly capacity?: number
  readonly asked: Span
  /** Left out: nothing is known of its end. */
  readonly ended?: Span
}

/** The records of a hold of the lock `a`. */
export function held(hold: string, { kind = 'mutex', asked, ended, ...rest }: HeldFrom): HistoryRecord[] {
  const [from, to] = asked
  const acquired: AcquireRecord = { type: 'acquire', lock: 'a', kind, hold, from, to, ...rest }
  return ended ? [acquired, { type: 'end', hold, from: ended[0], to: ended[1] }] : [acquired]
}

/** A request for the lock `a` that was not answered. */
export function unanswered(hold: string, from: number, waitedUntil?: number): AcquireRecord {
  const asked = { type: 'acquire', lock: 'a', kind: 'mutex', hold, from, to: null, fence: null } as const
  return waitedUntil === undefined ? asked : { ...asked, waitedUntil }
}

export function fault(from: number, to: number): FaultRecord {
  return { type: 'fault', name: 'pause', from, to }
}

/** A write to the register `r`. */
export function wrote(
  value: string,
  fence: number,
  [from, to]: Span,
  isAccepted: boolean | null = true,
): WriteRecord {
  return { type: 'write', register: 'r', hold: `hold ${fence}`, fence, value, from, to, isAccepted }
}

/** A read of the register `r`. */
export function read(
  value: string | null,
  fence: number,
  [from, to]: Span,
  isAccepted: boolean | null = true,
): ReadRecord {
  return { type: 'read', register: 'r', hold: `hold ${fence}`, fence, value, from, to, isAccepted }
}
