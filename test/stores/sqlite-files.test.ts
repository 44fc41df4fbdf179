import {
  chmodSync,
  closeSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { describe, expect, it } from 'vitest'
import { HoldfastError } from '../../src/base/errors.js'
import type { SqliteDatabase } from '../../src/drivers/sqlite.js'
import { isBusy } from '../../src/drivers/sqlite-failures.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { prepareFile } from '../../src/stores/sqlite/schema.js'
import { ask, beat, Child, connect, openRaw, request, tempFolder, testEnv } from './sqlite/helpers.js'

const isRoot = process.getuid?.() === 0
const NOBODY = 65534

async function failure(path: string): Promise<HoldfastError> {
  const error = await Promise.resolve(connect(sqlite(path)).claim(request('r', '1'))).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof HoldfastError)) throw new Error(`expected a HoldfastError, got ${String(error)}`)
  return error
}

describe('a path that makes no sense', () => {
  it.each([
    [':memory:', /memory\(\)/],
    ['', /memory\(\)/],
    ['file:locks.db', /path of a file/],
    ['libsql://host/db', /path of a file/],
    ['a\0b', /NUL/],
  ])('%j is refused before anything is opened', (path, message) => {
    expect(() => sqlite(path)).toThrow(message)
    expect(() => sqlite(path)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
  })

  it('is told from one that leads nowhere', async () => {
    const folder = tempFolder()
    const error = await failure(folder.path('missing/locks.db'))
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', retryable: false })
    expect(error.message).toContain(`mkdir -p '${folder.path('missing')}'`)
  })

  it('is told from a folder', async () => {
    const folder = tempFolder()
    mkdirSync(folder.path('locks.db'))
    const error = await failure(folder.path('locks.db'))
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', retryable: false })
    expect(error.message).toContain('is a folder')
  })

  it('can be put right: the next call opens the file', async () => {
    const folder = tempFolder()
    const client = connect(sqlite(folder.path('later/locks.db')))
    await expect(client.claim(request('r', '1'))).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    mkdirSync(folder.path('later'))
    expect(await client.claim(request('r', '1'))).toMatchObject({ status: 'granted' })
  })
})

describe('a file that is not ours', () => {
  it('is refused when it is no database', async () => {
    const path = tempFolder().path('notes.txt')
    writeFileSync(path, 'These are my notes. '.repeat(500))
    const error = await failure(path)
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', retryable: false })
    expect(error.message).toContain('not an SQLite database')
  })

  it.each([
    ['with tables', 'CREATE TABLE customer (name TEXT)'],
    ['with a mark of its own', 'PRAGMA application_id = 7; CREATE TABLE claim (x); DROP TABLE claim'],
    ['with a version of its own', 'PRAGMA user_version = 3'],
  ])("is refused, and left as it is, when it is another application's database %s", async (_, sql) => {
    const path = tempFolder().path('app.db')
    const raw = await openRaw(path)
    raw.exec(sql)
    const mode = raw.prepare('PRAGMA journal_mode').get()?.['journal_mode']
    const tables = ask(raw, 'SELECT count(*) FROM sqlite_master')
    const error = await failure(path)
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', retryable: false })
    expect(error.message).toContain('another application')
    expect(raw.prepare('PRAGMA journal_mode').get()?.['journal_mode']).toBe(mode)
    expect(ask(raw, 'SELECT count(*) FROM sqlite_master')).toBe(tables)
  })

  it('is refused when a newer Holdfast wrote it', async () => {
    const path = tempFolder().path('locks.db')
    await connect(sqlite(path)).pulse([])
    const raw = await openRaw(path)
    raw.exec('PRAGMA user_version = 99')
    const error = await failure(path)
    expect(error).toMatchObject({ code: 'UNSUPPORTED', retryable: false })
    expect(error.message).toContain('newer Holdfast (schema 99')
  })

  it('is taken when it is empty', async () => {
    const path = tempFolder().path('locks.db')
    writeFileSync(path, '')
    expect(await connect(sqlite(path)).claim(request('r', '1'))).toMatchObject({ status: 'granted' })
  })
})

describe('a file that another process is just making', () => {
  it('shows nothing or everything', async () => {
    const path = tempFolder().path('locks.db')
    const [mine, others] = [await openRaw(path), await openRaw(path)]
    const make = (database: SqliteDatabase): void => prepareFile(database, path, () => {})
    const attempt = (database: SqliteDatabase): boolean => {
      try {
        make(database)
        return true
      } catch (error) {
        if (!isBusy(error)) throw error
        return false
      }
    }
    let looks = 0
    const interrupted: SqliteDatabase = {
      ...mine,
      prepare(sql) {
        // The other one comes between the look at the mark and the look at the tables.
        if (sql.includes('sqlite_master')) {
          looks += 1
          if (looks === 1) attempt(others)
        }
        return mine.prepare(sql)
      },
    }
    if (!attempt(interrupted)) make(interrupted)
    expect(looks).toBeGreaterThan(0)
    expect(ask(mine, 'PRAGMA user_version')).toBe(1)
  })
})

describe('a file that cannot be written', () => {
  // root may write everything, so the store is then used by another user.
  const asUser = isRoot ? { uid: NOBODY } : {}

  async function failureOfUser(path: string): Promise<unknown> {
    const child = new Child(['fail', path], asUser)
    return await child.next()
  }

  it('is refused when the file is read-only', async () => {
    const path = tempFolder().path('locks.db')
    const client = connect(sqlite(path))
    await client.claim(request('r', '1'))
    await client.close()
    chmodSync(path, 0o444)
    expect(await failureOfUser(path)).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      retryable: false,
      message: expect.stringMatching(/must be able to write the file and its folder/),
    })
  })

  it('is refused when the folder is read-only', async () => {
    const folder = tempFolder()
    mkdirSync(folder.path('closed'))
    chmodSync(folder.path('closed'), 0o555)
    expect(await failureOfUser(folder.path('closed/locks.db'))).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      retryable: false,
      message: expect.stringMatching(/must be able to write the file and its folder/),
    })
  })
})

describe('a damaged file', () => {
  it('is refused, and says what to do', async () => {
    const path = tempFolder().path('locks.db')
    const client = connect(sqlite(path))
    for (let index = 0; index < 300; index += 1)
      await client.claim(request(`r${index}`, '1', { info: 'x'.repeat(500) }))
    await client.close()
    // Everything after the first page is nonsense, the tables' roots too.
    const size = statSync(path).size
    const file = openSync(path, 'r+')
    writeSync(file, Buffer.alloc(size - 4096, 0xa5), 0, size - 4096, 4096)
    closeSync(file)
    const error = await failure(path)
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: false })
    expect(error.message).toContain('is damaged')
  })
})

describe('a file that is removed or replaced while it is used', () => {
  it('is noticed within a second: holders learn that their hold is gone', async () => {
    const folder = tempFolder()
    const path = folder.path('locks.db')
    const env = testEnv(1_000_000)
    const client = connect(sqlite(path, { env }))
    const { fence } = (await client.claim(request('r', '1'))) as { fence: number }
    renameSync(path, folder.path('away.db'))
    for (const end of ['-wal', '-shm']) rmSync(path + end, { force: true })
    env.nowMs += 1001
    expect(await client.pulse([beat('r', '1')])).toEqual([{ status: 'gone' }])
    expect(client.news).toEqual([{ type: 'gap' }])
    const again = (await client.claim(request('r', '2'))) as { fence: number }
    expect(again.fence).toBeGreaterThan(fence)
    const other = connect(sqlite(path, { env }))
    expect(await other.claim(request('r', '3', { mode: 'try' }))).toMatchObject({ status: 'refused' })
  })
})
