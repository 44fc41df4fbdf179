import { isBuiltin } from 'node:module'
import { describe, expect, it } from 'vitest'
import type { HoldfastError } from '../../src/base/errors.js'
import { loadDriver } from '../../src/drivers/sqlite.js'
import { explain, isBusy } from '../../src/drivers/sqlite-failures.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { connect, request, tempFolder } from './sqlite/helpers.js'

describe('drivers', () => {
  const hasOwn = isBuiltin('node:sqlite')

  it('takes the one of Node where there is one', async () => {
    const { name } = await loadDriver()
    expect(name).toBe(hasOwn ? 'node:sqlite' : 'libsql')
  })

  it('takes the one that is asked for', async () => {
    const client = connect(sqlite(tempFolder().path('locks.db'), { driver: 'libsql' }))
    expect(await client.claim(request('r', '1'))).toMatchObject({ status: 'granted' })
  })

  it('says which command to run where it is not installed', async () => {
    const client = connect(sqlite(tempFolder().path('locks.db'), { driver: 'better-sqlite3' }))
    const error = await client.pulse([]).then(
      () => undefined,
      (reason: HoldfastError) => reason,
    )
    expect(error).toMatchObject({ code: 'UNSUPPORTED', retryable: false })
    expect(error?.message).toContain('npm install better-sqlite3')
  })

  it('refuses one that it does not know', () => {
    expect(() => sqlite('x.db', { driver: 'sqlite3' as 'libsql' })).toThrow(/must be one of/)
  })

  it.each(hasOwn ? (['node:sqlite', 'libsql'] as const) : (['libsql'] as const))(
    'errors of %s are understood',
    async (name) => {
      const path = tempFolder().path('x.db')
      const driver = await loadDriver(name)
      const one = driver.open(path)
      const two = driver.open(path)
      one.exec('PRAGMA journal_mode = WAL; CREATE TABLE t (x); PRAGMA max_page_count = 5')
      const fill = (): void => {
        for (let index = 0; index < 100; index += 1)
          one.prepare('INSERT INTO t VALUES (?)').run('x'.repeat(1000))
      }
      expect(explain(thrownBy(fill), path)).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
      one.exec('BEGIN IMMEDIATE')
      expect(isBusy(thrownBy(() => two.exec('BEGIN IMMEDIATE')))).toBe(true)
      one.exec('ROLLBACK')
      // A snapshot that has become old.
      one.exec('BEGIN')
      one.prepare('SELECT * FROM t').all()
      two.exec('DELETE FROM t')
      expect(isBusy(thrownBy(() => one.exec('DELETE FROM t')))).toBe(true)
      one.exec('ROLLBACK; PRAGMA query_only = 1')
      expect(
        explain(
          thrownBy(() => one.exec('DELETE FROM t')),
          path,
        ),
      ).toMatchObject({ retryable: false })
      one.close()
      two.close()
    },
  )

  it.each([
    ['SQLITE_IOERR_WRITE', 'STORE_UNAVAILABLE', true],
    ['SQLITE_FULL', 'STORE_UNAVAILABLE', true],
    ['SQLITE_READONLY_DBMOVED', 'STORE_UNAVAILABLE', false],
    ['SQLITE_CORRUPT_INDEX', 'STORE_UNAVAILABLE', false],
    ['SQLITE_NOTADB', 'INVALID_ARGUMENT', false],
    ['SQLITE_ERROR', 'STORE_UNAVAILABLE', false],
  ])('%s becomes %s', (code, ours, retryable) => {
    const foreign = Object.assign(new Error('from the driver'), { code })
    expect(explain(foreign, '/tmp/x.db')).toMatchObject({ code: ours, retryable })
    for (const busy of ['SQLITE_BUSY_RECOVERY', 'SQLITE_BUSY_SNAPSHOT', 'SQLITE_LOCKED'])
      expect(isBusy(Object.assign(new Error(), { code: busy }))).toBe(true)
    expect(isBusy(foreign)).toBe(false)
  })
})

describe('errors of the node:sqlite of Deno, which tells no result code for some', () => {
  const from = (message: string): Error => Object.assign(new Error(message), { code: 'ERR_SQLITE_ERROR' })

  it.each([
    ['database or disk is full', 'STORE_UNAVAILABLE', true],
    ['disk I/O error', 'STORE_UNAVAILABLE', true],
    ['file is not a database', 'INVALID_ARGUMENT', false],
    ['unable to open database file: /nowhere/x.db', 'INVALID_ARGUMENT', false],
    ['near "nope": syntax error in nope at offset 0', 'STORE_UNAVAILABLE', false],
  ])('%s becomes %s', (message, code, retryable) => {
    expect(explain(from(message), '/nowhere/x.db')).toMatchObject({ code, retryable })
    expect(isBusy(from(message))).toBe(false)
  })

  it('database is locked: it can be tried again', () => {
    expect(isBusy(from('database is locked'))).toBe(true)
  })
})

function thrownBy(work: () => void): unknown {
  try {
    work()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}
