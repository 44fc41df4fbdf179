import type { MysqlNames } from './sql/names.js'
import { bytes, toBytes } from './values.js'

/** What a row of the answer says. */
export type PollRow =
  | readonly ['now', timeUs: number]
  | readonly ['granted', line: string, id: string, fence: number]
  | readonly ['lost', line: string, id: string, fence: number]
  | readonly ['line', line: string, nextPlace: number, lastPlace: number, lastFence: number]
  | readonly ['state', state: string, last: number]

export interface PollQuestion {
  readonly client: string
  /** News from this time of the server on. */
  readonly sinceUs: number
  /** Keys of lines and states to look at. */
  readonly lines: readonly string[]
  readonly states: readonly string[]
}

/** One SELECT without locks: news of the client's claims, its lines and its watched states. */
export function pollQuery(
  { line, news, state }: MysqlNames,
  { client, sinceUs, lines, states }: PollQuestion,
): string {
  const parts = [
    answer(`'now'`, `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))`),
    `${answer('what', hex('line'), hex('id'), 'fence')} FROM ${news} WHERE client = ${toBytes(client)} AND at > ${sinceUs}`,
  ]
  if (lines.length > 0)
    parts.push(
      `${answer(`'line'`, hex('line'), 'COALESCE(next_place, 0)', 'last_place', 'last')} FROM ${line} WHERE line IN (${listOf(lines)})`,
    )
  if (states.length > 0)
    parts.push(`${answer(`'state'`, hex('state'), 'last')} FROM ${state} WHERE state IN (${listOf(states)})`)
  return parts.join(' UNION ALL ')
}

/** A SELECT whose rows are JSON arrays: a word, and then these columns. */
function answer(word: string, ...columns: string[]): string {
  return `SELECT CONCAT('["', ${word}, '",', ${columns.join(", ',', ")}, ']') AS answer`
}

function hex(column: string): string {
  return `'"', HEX(${column}), '"'`
}

function listOf(keys: readonly string[]): string {
  return keys.map(bytes).join(',')
}
