import type { RunResult } from './run.js'
import type { WindowResult } from './windows.js'

/** All windows of one fault, or of pairs of faults. */
export interface FaultFigures {
  readonly fault: string
  readonly times: number
  readonly grants: number
  readonly grantsBefore: number
  readonly losses: number
  readonly refused: number
  readonly unavailable: number
  readonly fewestGrants: number
  readonly gapMs: number
  /** The longest one, and how long that one was allowed to take. */
  readonly recoveryMs: number
  readonly boundMs: number
  /** Recoveries that took longer than they may. */
  readonly late: number
}

/** A run as it is kept in `results`. */
export interface KeptRun extends Omit<RunResult, 'windows'> {
  readonly command: string
  readonly date: string
  /** Of this repository. */
  readonly commit: string
  readonly doesCount: boolean
  readonly faults: readonly FaultFigures[]
}

/**
 * A run counts if so many grants were made in each window, so many stale writes were refused, and both
 * judges were there.
 */
const ENOUGH_GRANTS = 30
const ENOUGH_REFUSED = 5
const PAIRS = 'two of them at a time'

export function keptRun({ windows, ...run }: RunResult, command: string, commit: string): KeptRun {
  const faults = summed(windows.map(figuresOf))
  const isEnough = faults.length > 0 && faults.every(({ fewestGrants }) => fewestGrants >= ENOUGH_GRANTS)
  return {
    ...{ command, date: new Date().toISOString().slice(0, 10), commit },
    doesCount: isEnough && run.refused >= ENOUGH_REFUSED && run.porcupine !== null,
    ...run,
    faults,
  }
}

/** One for each fault, pairs last. */
export function summed(figures: readonly FaultFigures[]): FaultFigures[] {
  const byFault = new Map<string, FaultFigures>()
  for (const each of figures) {
    const before = byFault.get(each.fault)
    byFault.set(each.fault, before ? sumOf(before, each) : each)
  }
  const place = ({ fault }: FaultFigures): string => (fault === PAIRS ? '~' : fault)
  return [...byFault.values()].sort((one, other) => (place(one) < place(other) ? -1 : 1))
}

function figuresOf(window: WindowResult): FaultFigures {
  const { faults, grants, grantsBefore, losses, refused, unavailable, gapMs, recoveryMs, boundMs } = window
  return {
    ...{ fault: faults.length > 1 ? PAIRS : (faults[0] ?? ''), times: 1 },
    ...{ grants, grantsBefore, losses, refused, unavailable, fewestGrants: grants },
    ...{ gapMs, recoveryMs, boundMs },
    late: recoveryMs > boundMs ? 1 : 0,
  }
}

function sumOf(one: FaultFigures, other: FaultFigures): FaultFigures {
  const { recoveryMs, boundMs } = one.recoveryMs < other.recoveryMs ? other : one
  return {
    fault: one.fault,
    times: one.times + other.times,
    grants: one.grants + other.grants,
    grantsBefore: one.grantsBefore + other.grantsBefore,
    losses: one.losses + other.losses,
    refused: one.refused + other.refused,
    unavailable: one.unavailable + other.unavailable,
    fewestGrants: Math.min(one.fewestGrants, other.fewestGrants),
    gapMs: Math.max(one.gapMs, other.gapMs),
    ...{ recoveryMs, boundMs },
    late: one.late + other.late,
  }
}
