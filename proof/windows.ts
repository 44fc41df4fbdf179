/** The time of a fault, in microseconds, until everybody was granted again. */
export interface Window {
  readonly faults: readonly string[]
  readonly from: number
  /** When it was healed. */
  readonly to: number
  readonly recoveredAt: number
  /** How long the recovery may take. */
  readonly boundMs: number
}

export interface WindowResult {
  readonly faults: readonly string[]
  readonly lastedMs: number
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
  readonly boundMs: number
}

interface Moments {
  readonly grantsAt: readonly number[]
  readonly lossesAt: readonly number[]
  readonly refusalsAt: readonly number[]
  readonly unavailableAt: readonly number[]
}

/** What happened in each window. Processes report late, so it is called when they have ended. */
export function measured(windows: readonly Window[], moments: Moments): WindowResult[] {
  const grantsAt = moments.grantsAt.toSorted((one, other) => one - other)
  return windows.map(({ faults, from, to, recoveredAt, boundMs }) => {
    const during = within(grantsAt, from, recoveredAt)
    return {
      faults,
      lastedMs: ms(to - from),
      grants: during.length,
      grantsBefore: within(during, from, to).length,
      losses: within(moments.lossesAt, from, recoveredAt).length,
      refused: within(moments.refusalsAt, from, recoveredAt).length,
      unavailable: within(moments.unavailableAt, from, recoveredAt).length,
      gapMs: ms(longestGap([from, ...during, recoveredAt])),
      recoveryMs: ms(recoveredAt - to),
      boundMs,
    }
  })
}

function within(times: readonly number[], from: number, to: number): number[] {
  return times.filter((at) => at >= from && at <= to)
}

function longestGap(times: readonly number[]): number {
  return times.reduce((longest, at, index) => Math.max(longest, at - (times[index - 1] ?? at)), 0)
}

function ms(microseconds: number): number {
  return Math.round(microseconds / 1000)
}
