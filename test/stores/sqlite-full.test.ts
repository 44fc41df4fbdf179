import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'libsql'
import { expect, it, onTestFinished } from 'vitest'
import { Holdfast } from '../../src/index.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { noTinyDisk, TinyDisk } from '../faults/tiny-disk.js'

const obstacle = noTinyDisk()
const title = 'SQLite goes on when its own log has filled the disk, and may be emptied again'

it.skipIf(obstacle)(`${title}${obstacle ? ` (skipped: ${obstacle})` : ''}`, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-full-'))
  const disk = new TinyDisk(join(folder, 'disk'), 3)
  const path = join(disk.folder, 'locks.db')
  const locks = new Holdfast(sqlite(path), { storeTimeout: '1s' })
  onTestFinished(async () => {
    await locks.close({ drain: 0 })
    disk.dispose()
    rmSync(folder, { recursive: true, force: true })
  })
  for (const name of ['next', 'last']) await locks.mutex(name).run(() => {})
  const reader = new Database(path)
  reader.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  // While somebody reads, the log cannot begin anew.
  reader.exec('BEGIN')
  reader.prepare('SELECT count(*) FROM claim').get()
  let failure: unknown
  while (failure === undefined)
    await locks
      .mutex('next')
      .run(() => {})
      .catch((error) => {
        failure = error
      })
  expect(failure).toMatchObject({ code: 'STORE_UNAVAILABLE', message: expect.stringContaining('No space') })
  reader.exec('COMMIT')
  reader.close()
  await locks.mutex('last').run(() => {})
})
