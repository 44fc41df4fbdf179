import { bytes } from '../values.js'
import { FAR, SKEW_US } from './line.js'
import type { Names } from './names.js'

/**
 * The short way. Most locks are free when they are asked for, and nobody else has asked when they are given back. Then the hold is kept in the row of the line, and
 * each call is one UPDATE; where it finds the line otherwise it changes nothing, and a routine is asked. The permits of such a hold are the line's `used`, its fence is the first of the `alone_block` up to `last`, its deadline `soonest`. Everything else needs the line as a whole: `openLine`.
 *
 * No assignment depends on whether an earlier one has been made already: servers and modes differ in that.
 */

/** When the statement began: a lease that starts a moment too early ends a moment too early, which its client expects anyway. */
const WALL = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"

/** What a claim says that can be served so; durations are microseconds, texts hexadecimal. */
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

/** Grants a line that is empty; the fence is the insert id of the answer. `at` is the time, for tests; NULL: the server's clock. */
export function grantAlone({ line }: Names, key: string, claim: AloneClaim, at: string): string {
  const { id, client, info, permits, capacity, lease, floor, block } = claim
  const wall = at === 'NULL' ? WALL : at
  return `UPDATE ${line} SET last = LAST_INSERT_ID(GREATEST(last + 1, LEAST(${floor + 1}, ${wall} + ${SKEW_US}), ${wall})) + ${block - 1},
    soonest = GREATEST(${wall} + shift, seen) + ${lease}, alone_since = GREATEST(${wall} + shift, seen), ${tick(wall)},
    used = ${permits}, capacity = ${capacity}, is_alone = 1, alone_block = ${block}, alone_id = ${bytes(id)}, alone_client = ${bytes(client)}, alone_info = ${bytes(info)}
  WHERE line = ${bytes(key)} AND used = 0 AND next_place IS NULL AND pinned IS NULL AND last < ${FAR} - ${block} AND ${wall} < ${FAR} - ${SKEW_US + block}`
}

/** Takes back a hold that is still alone, and has not lapsed. */
export function releaseAlone({ line }: Names, key: string, id: string, at: string): string {
  const wall = at === 'NULL' ? WALL : at
  return `UPDATE ${line} SET used = 0, soonest = ${FAR}, is_alone = 0, ${tick(wall)}
  WHERE line = ${bytes(key)} AND is_alone = 1 AND alone_id = ${bytes(id)} AND GREATEST(${wall} + shift, seen) < soonest`
}

/** Renews holds that are alone, of many lines at once and all for the same time. */
export function renewAlone({ line }: Names, beats: readonly AloneBeat[], lease: number, at: string): string {
  const wall = at === 'NULL' ? WALL : at
  return `UPDATE ${line} FORCE INDEX (PRIMARY) SET soonest = GREATEST(soonest, GREATEST(${wall} + shift, seen) + ${lease}), ${tick(wall)}
  WHERE ${isOneOf(beats)} AND GREATEST(${wall} + shift, seen) < soonest`
}

/** The key of the line of each that is alone and alive, and what is left of its lease, in microseconds. */
export function whichAreAlone({ line }: Names, beats: readonly AloneBeat[], at: string): string {
  const wall = at === 'NULL' ? WALL : at
  return `SELECT CONCAT('["', HEX(line), '",', soonest - GREATEST(${wall} + shift, seen), ']') AS answer FROM ${line} FORCE INDEX (PRIMARY)
  WHERE ${isOneOf(beats)} AND GREATEST(${wall} + shift, seen) < soonest`
}

/** By the key of the line, so that the server locks them in that order. */
function isOneOf(beats: readonly AloneBeat[]): string {
  const keys = beats.map(({ line }) => bytes(line))
  const holds = beats.map(({ id, fence }) => `(${bytes(id)},${fence})`)
  return `line IN (${keys.join(',')}) AND is_alone = 1 AND (alone_id, last - alone_block + 1) IN (${holds.join(',')})`
}

/** The line's clock goes on; a clock of the server that was set back does not count. */
function tick(wall: string): string {
  return `shift = GREATEST(shift, seen - ${wall}), seen = GREATEST(${wall} + shift, seen)`
}
