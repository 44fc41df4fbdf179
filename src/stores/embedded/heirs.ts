import { EXCLUSIVE, MOST_HEIRS } from '../../contract/constants.js'
import { liveRows } from './front.js'
import type { ClaimRow, ClaimRows } from './rows.js'

/**
 * The ids of the claims right behind an exclusive one that the same client makes with the same
 * options.
 */
export function heirsOf(rows: ClaimRows, first: ClaimRow, capacity: number, now: number): string[] {
  const heirs: string[] = []
  const isPlain = first.block === 1 && first.maxHoldMs === null
  if (first.permits !== EXCLUSIVE || capacity !== EXCLUSIVE || !isPlain) return heirs
  let isBehind = false
  for (const row of liveRows(rows, first.resource, now)) {
    if (isBehind && !(isAlike(row, first) && row.floor <= rows.counter())) break
    if (isBehind) heirs.push(row.id)
    if (heirs.length >= MOST_HEIRS) break
    isBehind ||= row.id === first.id
  }
  return heirs
}

/**
 * A client passes its hold on between claims with equal options only, so others need not be named.
 */
function isAlike(row: ClaimRow, first: ClaimRow): boolean {
  const isSame = row.client === first.client && row.info === first.info
  return isSame && row.permits === first.permits && row.block === 1 && row.maxHoldMs === null
}
