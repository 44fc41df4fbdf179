import { expect } from 'vitest'
import type { Crowd } from './crowd.js'
import type { Conflict } from './judge.js'

/** `npm run test:faults` has more rounds and longer stalls. */
export const ROUNDS = Number(process.env['HOLDFAST_FAULT_ROUNDS'] ?? 1)
export const STALL_MS = Number(process.env['HOLDFAST_FAULT_STALL_MS'] ?? 3000)
export const LIMIT_MS = 180_000 + ROUNDS * 60_000

/**
 * Ends the crowd; fails where something happened that must not, except for the conflicts that the
 * store's page names.
 */
export async function judged(crowd: Crowd, mayConflict?: (conflict: Conflict) => boolean): Promise<void> {
  await crowd.end()
  console.log(crowd.judge.summary)
  const nothing = { overlaps: [], lowered: [], lateLosses: [], oddFailures: [], lateRecoveries: [] }
  expect(crowd.judge.faults(mayConflict)).toEqual(nothing)
}
