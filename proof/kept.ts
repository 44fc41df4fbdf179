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
  readonly gapMs: number
  /** The longest one, and how long that one was allowed to take. */
  readonly recoveryMs: number
  readonly boundMs: number
  /** Until the last task was granted again. */
  readonly servedMs?: number
  /** Recoveries that took longer than they may. */
  readonly late: number
}

/** A run as it is kept in `results`. */
export interface KeptRun extends Omit<RunResult, 'windows'> {
  readonly command: string
  readonly date: string
  /** Of this repository. */
  readonly commit: string
  /** Enough happened in each window, and both judges were there. */
  readonly doesCount: boolean
  /** What happened too seldom. */
  readonly lacks?: readonly string[]
  readonly faults: readonly FaultFigures[]
  /** Which faults were made two at a time. */
  readonly pairs?: readonly string[]
}

const PAIRS = 'two of them at a time'

export function keptRun({ windows, ...run }: RunResult, command: string, commit: string): KeptRun {
  const lacks = windows.flatMap((window) => window.lacks)
  return {
    ...{ command, date: new Date().toISOString().slice(0, 10), commit },
    doesCount: windows.length > 0 && lacks.length === 0 && run.porcupine !== null,
    lacks,
    ...run,
    faults: summed(windows.map(figuresOf)),
    pairs: windows.filter(({ faults }) => faults.length > 1).map(({ faults }) => faults.join(' + ')),
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
  const { faults, lacks, ...figures } = window
  return {
    ...{ fault: faults.length > 1 ? PAIRS : (faults[0] ?? ''), times: 1 },
    ...figures,
    late: figures.recoveryMs > figures.boundMs ? 1 : 0,
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
    gapMs: Math.max(one.gapMs, other.gapMs),
    ...{ recoveryMs, boundMs },
    servedMs: Math.max(one.servedMs ?? 0, other.servedMs ?? 0),
    late: one.late + other.late,
  }
}
