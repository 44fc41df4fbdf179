import { decodeText, encodeText } from '../../base/text.js'
import type { LocalClient } from './clients.js'
import type { LockFile } from './lock-file.js'

/** At most so many rows of each kind in one sweep: the rest waits for the next. */
const MOST_ROWS = 500
const MOST_LINES = 50
/** Watchers say every minute that they live. */
const WATCHER_DEAD_AFTER_MS = 10 * 60_000

export interface LapsedLine {
  readonly space: string
  readonly resource: string
}

/** The lines with lapsed claims. Whoever uses a line tidies it; these may be lines that nobody uses any more. */
export function findLapsedLines(file: LockFile): LapsedLine[] {
  const cells = file.sql.lapsedLines.all(file.transaction.now, MOST_LINES)
  return cells.map(({ space, resource }) => ({
    space: decodeText(String(space)),
    resource: decodeText(String(resource)),
  }))
}

/** Removes what has ended and what the dead have left, in one transaction. */
export function sweep(file: LockFile, lapsed: readonly LapsedLine[]): void {
  for (const { space, resource } of lapsed) file.space(space).lines.sweep(resource)
  const { now } = file.transaction
  const removed =
    file.sql.sweepStates.run(now, MOST_ROWS) +
    file.sql.sweepWatchers.run(now - WATCHER_DEAD_AFTER_MS, MOST_ROWS)
  if (removed > 0) file.transaction.hasChanged = true
}

/** Says that the watchers among these clients live. */
export function beatWatchers(file: LockFile, clients: Iterable<LocalClient>): void {
  for (const { context, address, watched } of clients) {
    if (watched.size === 0) continue
    const beaten = file.sql.watcherBeat.run(
      file.transaction.now,
      encodeText(context.space),
      encodeText(address),
    )
    if (beaten > 0) file.transaction.hasChanged = true
  }
}

/** Removes what others would have told a client that leaves. */
export function forgetClient(file: LockFile, { context, address }: LocalClient): void {
  const watches = file.sql.watcherForget.run(encodeText(context.space), encodeText(address))
  if (watches > 0) file.transaction.hasChanged = true
}
