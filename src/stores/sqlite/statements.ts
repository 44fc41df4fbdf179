import type { SqliteDatabase, SqliteStatement } from '../../drivers/sqlite.js'

const CLAIM_COLUMNS =
  'place, resource, id, client, permits, capacity, fence, expires, max_hold_ms, floor, block, since, info'

/** Inserts a claim at a place computed from the line's places, by space and resource. */
const insertAt = (place: string) =>
  `INSERT INTO claim (id, client, permits, capacity, fence, expires, max_hold_ms, floor, block, since, info, space, resource, place)
   VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT ${place} FROM claim WHERE space = ? AND resource = ?))`

/** The statements, prepared once for each opened file. Those of the hot path use an index. */
const SQL = {
  loadHead: 'SELECT counter, boot, seen, EXISTS (SELECT 1 FROM pin) AS has_pins FROM holdfast',
  saveHead: 'UPDATE holdfast SET counter = ?, seen = ?',
  version: 'PRAGMA data_version',

  claimFirst: `SELECT ${CLAIM_COLUMNS} FROM claim WHERE space = ? AND resource = ? ORDER BY place LIMIT 1`,
  claimsAfter: `SELECT ${CLAIM_COLUMNS} FROM claim WHERE space = ? AND resource = ? AND place > ? ORDER BY place LIMIT ?`,
  claimById: `SELECT ${CLAIM_COLUMNS} FROM claim INDEXED BY claim_id WHERE space = ? AND resource = ? AND id = ?`,
  claimAppend: insertAt('coalesce(max(place), 0) + 1'),
  claimPrepend: insertAt('coalesce(min(place), 0) - 1'),
  claimReplace: `UPDATE claim SET id = ?, client = ?, permits = ?, capacity = ?, fence = ?, expires = ?, max_hold_ms = ?, floor = ?,
    block = ?, since = ?, info = ? WHERE space = ? AND resource = ? AND place = ?`,
  claimUpdate:
    'UPDATE claim SET permits = ?, fence = ?, expires = ?, since = ?, block = ? WHERE space = ? AND resource = ? AND place = ?',
  claimRemove: 'DELETE FROM claim WHERE space = ? AND resource = ? AND place = ?',
  resourceFrom: 'SELECT resource FROM claim WHERE space = ? AND resource >= ? ORDER BY resource LIMIT 1',
  spaces: 'SELECT DISTINCT space FROM claim',

  pinGet: 'SELECT declared, capacity FROM pin WHERE space = ? AND resource = ?',
  pinSet: 'INSERT OR REPLACE INTO pin (space, resource, declared, capacity) VALUES (?, ?, ?, ?)',
  pinRemove: 'DELETE FROM pin WHERE space = ? AND resource = ?',

  stateGet: 'SELECT value, version, expires FROM state WHERE space = ? AND key = ?',
  stateKeys: 'SELECT key FROM state WHERE space = ? AND key >= ? ORDER BY key LIMIT ?',
  stateSet: 'INSERT OR REPLACE INTO state (space, key, value, version, expires) VALUES (?, ?, ?, ?, ?)',
  stateRemove: 'DELETE FROM state WHERE space = ? AND key = ?',

  watcherAdd: 'INSERT OR REPLACE INTO watcher (space, key, client, seen) VALUES (?, ?, ?, ?)',
  watcherOfKey: 'SELECT client FROM watcher WHERE space = ? AND key = ?',
  watcherTake: 'DELETE FROM watcher WHERE space = ? AND key = ?',
  watcherRefresh: 'UPDATE watcher SET seen = ? WHERE space = ? AND client = ?',
  watcherForget: 'DELETE FROM watcher WHERE space = ? AND client = ?',

  lapsedLines: 'SELECT DISTINCT space, resource FROM claim WHERE expires <= ? LIMIT ?',
  sweepStates:
    'DELETE FROM state WHERE (space, key) IN (SELECT space, key FROM state WHERE expires IS NOT NULL AND expires <= ? LIMIT ?)',
  sweepWatchers:
    'DELETE FROM watcher WHERE (space, key, client) IN (SELECT space, key, client FROM watcher WHERE seen <= ? LIMIT ?)',
} as const

export type SqliteStatements = Readonly<Record<keyof typeof SQL, SqliteStatement>>

export function prepareStatements(database: SqliteDatabase): SqliteStatements {
  const prepared = Object.entries(SQL).map(([name, sql]) => [name, database.prepare(sql)])
  return Object.fromEntries(prepared) as SqliteStatements
}
