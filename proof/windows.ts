import type { Nemesis } from './nemesis.js'

/** The time of a fault, in microseconds, until everybody was granted again. */
export interface Window {
  readonly faults: readonly Nemesis[]
  readonly from: number
  /** When it was healed. */
  readonly to: number
  /** When each client was granted each lock again, and each of its tasks. */
  readonly recoveredAt: number
  readonly servedAt: number
  /** How long the recovery may take. */
  readonly boundMs: number
}

export interface WindowResult {
  readonly faults: readonly string[]
  /** From its beginning to the end of the recovery, and before it was healed. */
  readonly grants: number
  readonly grantsBefore: number
  readonly losses: number
  readonly refused: number
  /** How often a probe was told that the store is down. */
  readonly unavailable: number
  /** The longest time without any grant. */
  readonly gapMs: number
  readonly recoveryMs: number
  readonly servedMs: number
  readonly boundMs: number
  /** What happened too seldom for the window to show anything. */
  readonly lacks: readonly string[]
}

/** Something that began and was seen to end. */
export interface Span {
  readonly from: number
  readonly at: number
  /** How long its process stood still meanwhile. */
  readonly lateUs: number
}

export interface Moments {
  readonly grantsAt: readonly number[]
  /** From the grant of each hold until its loss was seen. */
  readonly losses: readonly Span[]
  readonly refusalsAt: readonly number[]
  /** Probes that were told that the store is down. */
  readonly unavailable: readonly Span[]
  /** Calls that failed. */
  readonly failures: readonly Span[]
}

/** A process that stands still for this part of a lease may lose holds, and time out. */
const LATE_SHARE = 4
/** In each window. */
const ENOUGH_GRANTS = 30
const ENOUGH_REFUSED = 5

/** What happened in each window. Processes report late, so it is called when they have ended. */
export function measured(windows: readonly Window[], moments: Moments): WindowResult[] {
  const grantsAt = moments.grantsAt.toSorted((one, other) => one - other)
  return windows.map((window) => {
    const { faults, from, to, recoveredAt, servedAt, boundMs } = window
    const during = within(grantsAt, from, recoveredAt)
    const figures = {
      grants: during.length,
      grantsBefore: within(during, from, to).length,
      losses: seenWithin(moments.losses, from, recoveredAt).length,
      refused: within(moments.refusalsAt, from, recoveredAt).length,
      unavailable: seenWithin(moments.unavailable, from, recoveredAt).length,
    }
    return {
      faults: faults.map(({ name }) => name),
      ...figures,
      gapMs: ms(longestGap([from, ...during, recoveredAt])),
      recoveryMs: ms(recoveredAt - to),
      servedMs: ms(servedAt - to),
      boundMs,
      lacks: lacksOf(faults, figures),
    }
  })
}

/** What only a fault explains, or a process that stood still, although there was neither. */
export function unexplained(windows: readonly Window[], moments: Moments, leaseMs: number): string[] {
  const kinds = {
    'lost holds': moments.losses,
    'calls failed': moments.failures,
    'probes failed': moments.unavailable,
  }
  return windows.flatMap(({ faults, from, recoveredAt }) =>
    faults.some(({ hits }) => hits !== 'nothing')
      ? []
      : Object.entries(kinds).flatMap(([what, spans]) => {
          const isInside = (span: Span): boolean => span.from >= from && span.at <= recoveredAt
          const isLate = ({ lateUs }: Span): boolean => lateUs > (leaseMs * 1000) / LATE_SHARE
          const count = spans.filter((span) => isInside(span) && !isLate(span)).length
          return count === 0 ? [] : [`Without a fault: ${count} ${what}`]
        }),
  )
}

/** Of two faults, one may leave nothing to do to the other. */
function lacksOf(
  faults: readonly Nemesis[],
  { grantsBefore, refused, losses }: Pick<WindowResult, 'grantsBefore' | 'refused' | 'losses'>,
): string[] {
  const isAlone = faults.length === 1
  const isServing = !faults.some(({ stopsAll }) => stopsAll)
  const mustLose = isAlone && faults.some(({ endsHolds }) => endsHolds)
  const name = faults.map((fault) => fault.name).join(' + ')
  return [
    ...(isServing && isAlone && grantsBefore < ENOUGH_GRANTS
      ? [`${name}: ${grantsBefore} grants while it lasted`]
      : []),
    ...(isServing && refused < ENOUGH_REFUSED ? [`${name}: ${refused} stale writes refused`] : []),
    ...(mustLose && losses === 0 ? [`${name}: no hold was lost`] : []),
  ]
}

function within(times: readonly number[], from: number, to: number): number[] {
  return times.filter((at) => at >= from && at <= to)
}

function seenWithin(spans: readonly Span[], from: number, to: number): Span[] {
  return spans.filter(({ at }) => at >= from && at <= to)
}

function longestGap(times: readonly number[]): number {
  return times.reduce((longest, at, index) => Math.max(longest, at - (times[index - 1] ?? at)), 0)
}

function ms(microseconds: number): number {
  return Math.round(microseconds / 1000)
}
