import { describe, expect, it } from 'vitest'
import { openSql } from './clients.mjs'
import { describeSqlGuard, openScene, sqliteFile } from './sql-cases.js'

const setting = { driver: 'sqlite', url: sqliteFile, skip: undefined }

describeSqlGuard(setting)

describe('a guarded write in a transaction of SQLite', () => {
  it('is undone with it', async () => {
    const { guard, table, row, ask } = await openScene(setting)
    await ask('BEGIN IMMEDIATE')
    guard.check({ resource: 'r', fence: 9 })
    expect(guard.update(9, { table, set: { content: 'undone' }, where: { id: 1 } })).toBe(true)
    await ask('ROLLBACK')
    expect(await row()).toEqual({ content: 'initial', fence: null })
    expect(() => guard.check({ resource: 'r', fence: 1 })).not.toThrow()
  })

  it('keeps a writer with another fence out until it ends', async () => {
    const { guard, url, ask } = await openScene(setting)
    const other = await openSql('sqlite', url)
    await other.ask('PRAGMA busy_timeout = 0')
    await ask('BEGIN IMMEDIATE')
    guard.check({ resource: 'r', fence: 5 })
    await expect(other.ask('BEGIN IMMEDIATE')).rejects.toThrow(/locked/)
    await ask('COMMIT')
    other.guard.check({ resource: 'r', fence: 6 })
    expect(() => guard.check({ resource: 'r', fence: 5 })).toThrow(
      expect.objectContaining({ code: 'STALE_FENCE', newestFence: 6 }),
    )
    await other.close()
  })
})

it('a trigger that keeps the row from changing is told, not taken for success', async () => {
  const { guard, table, ask } = await openScene(setting)
  await ask(`CREATE TRIGGER ignore BEFORE UPDATE ON ${table} BEGIN SELECT RAISE(IGNORE); END`)
  const update = { table, set: { content: 'x' }, where: { id: 1 } }
  expect(() => guard.update(5, update)).toThrow(expect.objectContaining({ code: 'UNSUPPORTED' }))
})
