import { renameSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Duration, toMs } from '../../base/duration.js'
import { invalid } from '../../base/errors.js'
import { checkName } from '../../base/names.js'
import { checkOptions } from '../../base/options.js'
import { type Fenced, fenceOf } from '../fenced.js'
import { resolveFile, syncFolder, writeDraft } from './draft.js'
import { SideDatabase } from './side-database.js'

/** The options of `replaceFile`. */
export interface ReplaceFileOptions {
  /**
   * The side database that remembers the newest fence of each file. All writers of a file must use
   * the same one. Default: `.holdfast-fence.db` in the folder of the file.
   */
  database?: string | undefined
  /** How long to wait for other writers; each takes milliseconds. Default 10 s. */
  wait?: Duration | undefined
}

/**
 * Replaces a whole file. Throws STALE_FENCE, and leaves the file as it is, if a newer fence has
 * written it. A missing file is created. Readers see the old content or the new one, never a part.
 *
 * The data goes to a new file beside it. The check and the rename happen inside one transaction of
 * a side database, so that two writers cannot pass the check together. Local disks only, as for
 * every SQLite file.
 *
 * @example
 * ```ts
 * import { Holdfast } from 'holdfast'
 * import { replaceFile } from 'holdfast/fence'
 * import { sqlite } from 'holdfast/sqlite'
 *
 * const locks = new Holdfast(sqlite('./locks.db'))
 * await locks.mutex('report').run(async (hold) => {
 *   await replaceFile(hold, './report.json', JSON.stringify({ total: 12 }))
 * })
 * await locks.close()
 * ```
 */
export async function replaceFile(
  hold: Fenced | number,
  path: string,
  data: string | Uint8Array,
  options: ReplaceFileOptions = {},
): Promise<void> {
  fenceOf(hold)
  checkOptions(options, { database: true, wait: true }, "{ wait: '10s' }")
  checkName(path, 'The path')
  if (typeof data !== 'string' && !(data instanceof Uint8Array))
    throw invalid(`The data of a file must be text or bytes, not ${typeof data}`)
  const waitMs = toMs(options.wait ?? '10s', { name: 'wait' })
  const target = await resolveFile(path)
  const databasePath = options.database ?? join(dirname(target), '.holdfast-fence.db')
  const fences = await SideDatabase.open(
    await resolveFile(checkName(databasePath, 'The path of the side database')),
  )
  try {
    await write(fences, hold, target, data, waitMs)
  } finally {
    fences.close()
  }
}

async function write(
  fences: SideDatabase,
  hold: Fenced | number,
  target: string,
  data: string | Uint8Array,
  waitMs: number,
): Promise<void> {
  const draft = await writeDraft(target, data)
  try {
    await fences.write(hold, target, waitMs, () => renameSync(draft, target))
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
  await syncFolder(dirname(target))
}
