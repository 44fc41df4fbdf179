import { decodeText, encodeText } from '../../base/text.js'
import type { SqliteStoreClient } from './clients.js'
import type { LockFile } from './lock-file.js'

/** The most rows of each kind in one sweep, which blocks other writers; the next one takes more. */
const MOST_ROWS = 500
const MOST_LINES = 50
/** Watchers are refreshed every minute. */
const WATCHER_DEAD_AFTER_MS = 10 * 60_000

export interface LapsedLine {
  readonly space: string
  readonly resource: string
}

/**
 * The lines with lapsed claims. Every call on a line removes them; no call may come to these any
 * more.
 */
export function findLapsedLines(file: LockFile): LapsedLine[] {
  const cells = file.sql.lapsedLines.all(file.transaction.now, MOST_LINES)
  return cells.map(({ space, resource }) => ({
    space: decodeText(String(space)),
    resource: decodeText(String(resource)),
  }))
}

/**
 * Removes lapsed claims, ended states and the watchers of dead clients, in one transaction. Returns
 * whether more may be left.
 */
export function sweep(file: LockFile, lapsed: readonly LapsedLine[]): boolean {
  for (const { space, resource } of lapsed) file.space(space).lines.sweep(resource)
  const { now } = file.transaction
  const states = file.sql.sweepStates.run(now, MOST_ROWS)
  const watchers = file.sql.sweepWatchers.run(now - WATCHER_DEAD_AFTER_MS, MOST_ROWS)
  if (states + watchers > 0) file.transaction.hasChanged = true
  return lapsed.length === MOST_LINES || Math.max(states, watchers) === MOST_ROWS
}

/** Marks the watchers among these clients as alive. */
export function refreshWatchers(file: LockFile, clients: Iterable<SqliteStoreClient>): void {
  for (const { context, address, watched } of clients) {
    if (watched.size === 0) continue
    const refreshed = file.sql.watcherRefresh.run(
      file.transaction.now,
      encodeText(context.space),
      encodeText(address),
    )
    if (refreshed > 0) file.transaction.hasChanged = true
  }
}

/** Removes the watches of a client that disconnects. */
export function forgetClient(file: LockFile, { context, address }: SqliteStoreClient): void {
  const watches = file.sql.watcherForget.run(encodeText(context.space), encodeText(address))
  if (watches > 0) file.transaction.hasChanged = true
}
