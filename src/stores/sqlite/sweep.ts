import type { LocalClient } from './clients.js'
import type { LockFile } from './lock-file.js'
import { decodeText, encodeText } from './text.js'

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
  // To release nobody's claim is to drop the lapsed ones and to promote.
  for (const { space, resource } of lapsed) file.space(space).lines.release(resource, '')
  const { now } = file.transaction
  const removed =
    file.sql.sweepStates.run(now, MOST_ROWS) +
    file.sql.sweepNews.run(now, MOST_ROWS) +
    file.sql.sweepWatchers.run(now - WATCHER_DEAD_AFTER_MS, MOST_ROWS)
  if (removed > 0) file.transaction.hasChanged = true
}

/** Says that the watchers among these clients live. Gives those that miss a watch, with no news of it on the way. */
export function beatWatchers(file: LockFile, clients: Iterable<LocalClient>): LocalClient[] {
  const missing: LocalClient[] = []
  for (const client of clients) {
    if (client.watched.size === 0) continue
    const { context, heard, watched } = client
    const address = [encodeText(context.space), encodeText(context.id)]
    const watching = file.sql.watcherBeat.run(file.transaction.now, ...address)
    const coming = file.news.since(context, heard).filter(({ news }) => news.type === 'state').length
    if (watching + coming < watched.size) missing.push(client)
    file.transaction.hasChanged = true
  }
  return missing
}

/** Removes what others would have told a client that leaves. */
export function forgetClient(file: LockFile, client: LocalClient): void {
  const { context } = client
  const watches = file.sql.watcherForget.run(encodeText(context.space), encodeText(context.id))
  if (file.news.forget(context, Number.MAX_SAFE_INTEGER) + watches > 0) file.transaction.hasChanged = true
}
