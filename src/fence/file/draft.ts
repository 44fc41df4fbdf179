import { open, realpath, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { systemEnv } from '../../base/env.js'
import { invalid } from '../../base/errors.js'

/** The real path, so that all writers find its fence under one name, whatever links they use. */
export async function resolveFile(path: string): Promise<string> {
  const absolute = resolve(path)
  const real =
    (await orUndefined(realpath(absolute))) ?? join(await resolveFolder(absolute), basename(absolute))
  const found = await orUndefined(stat(real))
  if (found && !found.isFile()) throw invalid(`${path} is not a regular file; give the path of a file`)
  return real
}

/**
 * Writes the data to a new file beside `target`, with its permissions, and syncs it. Returns its
 * path.
 */
export async function writeDraft(target: string, data: string | Uint8Array): Promise<string> {
  const draft = join(dirname(target), `.holdfast-${systemEnv.id()}.tmp`)
  const mode = (await orUndefined(stat(target)))?.mode
  const file = await open(draft, 'wx', mode ?? 0o666)
  try {
    if (mode !== undefined) await file.chmod(mode & 0o7777)
    await file.writeFile(data)
    await file.sync()
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  } finally {
    await file.close()
  }
  return draft
}

/** Makes a rename in the folder durable. Does nothing where folders cannot be synced (Windows). */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await orUndefined(open(folder, 'r'))
  await orUndefined(handle?.sync())
  await handle?.close()
}

async function resolveFolder(path: string): Promise<string> {
  const folder = dirname(path)
  const real = await orUndefined(realpath(folder))
  if (real === undefined)
    throw invalid(`The folder ${folder} does not exist; create it first: mkdir -p '${folder}'`)
  return real
}

async function orUndefined<T>(result: Promise<T> | undefined): Promise<T | undefined> {
  try {
    return await result
  } catch {
    return undefined
  }
}
