import { hasFencesLeft, lineClock, nextFence } from '../../shared/sql.js'
import { bytes } from '../values.js'
import { FAR } from './line.js'
import type { MysqlNames } from './names.js'

/**
 * The fast path: a free lock is acquired, or a hold is released that no other claim waits for. The
 * hold is kept in the row of the line, and each call is one UPDATE; where another claim is in the
 * line it changes nothing, and a routine is called. The permits of such a hold are the line's
 * `used`, its fence is the first of the `alone_block` up to `last`, its deadline is `soonest`.
 *
 * No value depends on whether an earlier assignment was made already: servers differ in that.
 */

/** When the statement began: the lease ends a moment too early, which is safe. */
const WALL = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"

/** A claim; durations are microseconds, texts hexadecimal. */
export interface AloneClaim {
  readonly id: string
  readonly client: string
  readonly info: string
  readonly permits: number
  readonly capacity: number
  readonly lease: number
  readonly floor: number
  readonly block: number
}

/** A hold to renew; the key of its line and its id are hexadecimal. */
export interface AloneBeat {
  readonly line: string
  readonly id: string
  readonly fence: number
}

/** Grants an empty line; the fence is the insert id. `at`: the time; NULL: the server's clock. */
export function grantAlone({ line }: MysqlNames, key: string, claim: AloneClaim, at: string): string {
  const { id, client, info, permits, capacity, lease, floor, block } = claim
  const wall = at === 'NULL' ? WALL : at
  return `UPDATE ${line} SET last = LAST_INSERT_ID(${nextFence('last', String(floor), wall)}) + ${block - 1},
    soonest = ${lineClock(wall)} + ${lease}, alone_since = ${lineClock(wall)}, ${tick(wall)},
    used = ${permits}, capacity = ${capacity}, is_alone = 1, alone_block = ${block}, alone_id = ${bytes(id)}, alone_client = ${bytes(client)}, alone_info = ${bytes(info)}
  WHERE line = ${bytes(key)} AND used = 0 AND next_place IS NULL AND pinned IS NULL AND ${hasFencesLeft('last', wall, String(block))}`
}

/** Releases a hold that is still alone, and has not lapsed. */
export function releaseAlone({ line }: MysqlNames, key: string, id: string, at: string): string {
  const wall = at === 'NULL' ? WALL : at
  return `UPDATE ${line} SET used = 0, soonest = ${FAR}, is_alone = 0, ${tick(wall)}
  WHERE line = ${bytes(key)} AND is_alone = 1 AND alone_id = ${bytes(id)} AND ${lineClock(wall)} < soonest`
}

/**
 * Renews holds that are alone in their lines, all with the same lease. Not in a line that another
 * call has touched since the statement began: for the line, its clock has been set back, and the
 * line would go ahead for good.
 */
export function renewAlone(
  { line }: MysqlNames,
  beats: readonly AloneBeat[],
  lease: number,
  at: string,
): string {
  const wall = at === 'NULL' ? WALL : at
  return `UPDATE ${line} FORCE INDEX (PRIMARY) SET soonest = GREATEST(soonest, ${lineClock(wall)} + ${lease}), ${tick(wall)}
  WHERE ${isOneOf(beats, wall)} AND ${lineClock(wall)} < soonest`
}

/** The line of each hold that is alone and has not lapsed, and the rest of its lease. */
export function whichAreAlone({ line }: MysqlNames, beats: readonly AloneBeat[], at: string): string {
  const wall = at === 'NULL' ? WALL : at
  return `SELECT CONCAT('["', HEX(line), '",', soonest - ${lineClock(wall)}, ']') AS answer FROM ${line} FORCE INDEX (PRIMARY)
  WHERE ${isOneOf(beats, wall)} AND ${lineClock(wall)} < soonest`
}

/** By the key of the line, as the server locks the rows. `wall`: the time of the statement. */
function isOneOf(beats: readonly AloneBeat[], wall: string): string {
  const keys = beats.map(({ line }) => bytes(line))
  const holds = beats.map(({ id, fence }) => `(${bytes(id)},${fence})`)
  return `line IN (${keys.join(',')}) AND seen <= ${wall} + shift AND is_alone = 1 AND (alone_id, last - alone_block + 1) IN (${holds.join(',')})`
}

/** Moves the line's clock on. */
function tick(wall: string): string {
  return `shift = GREATEST(shift, seen - ${wall}), seen = ${lineClock(wall)}`
}
