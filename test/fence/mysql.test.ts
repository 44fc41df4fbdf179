import { describe, expect, it, onTestFinished } from 'vitest'
import { mysqlGuard } from '../../src/fence/index.js'
import { load, openSql, type SqlDatabase } from './clients.mjs'
import { describeSqlGuard, needs, openScene, type SqlSetting } from './sql-cases.js'

const VARIABLE = 'HOLDFAST_TEST_MYSQL_URL'
const setting = (driver: string): SqlSetting => ({
  driver,
  url: () => process.env[VARIABLE] ?? '',
  skip: needs(VARIABLE),
})

for (const driver of ['mysql2', 'mariadb']) describeSqlGuard(setting(driver))

describe.skipIf(needs(VARIABLE))(`transactions of MySQL ${needs(VARIABLE) ?? ''}`, () => {
  it('keep a writer with another fence waiting until they end', async () => {
    const { guard, url, ask } = await openScene(setting('mysql2'))
    const other = await openOther(url)
    const resource = `r ${process.pid} ${Math.random()}`
    await guard.check({ resource, fence: 4 })
    await ask('BEGIN')
    await guard.check({ resource, fence: 5 })
    const order: string[] = []
    const newer = other.guard.check({ resource, fence: 6 }).then(() => order.push('newer passed'))
    await lockIsWaitedFor(url)
    order.push('commit')
    await ask('COMMIT')
    await newer
    expect(order).toEqual(['commit', 'newer passed'])
    await expect(guard.check({ resource, fence: 5 })).rejects.toMatchObject({ newestFence: 6 })
  })

  it.each(['REPEATABLE READ', 'READ COMMITTED', 'SERIALIZABLE'])(
    'in %s see the newest fence, although they show an old row',
    async (level) => {
      const { guard, url, table, row } = await openScene(setting('mysql2'))
      const other = await openOther(url)
      await other.ask(`SET SESSION TRANSACTION ISOLATION LEVEL ${level}`)
      await other.ask('BEGIN')
      // Takes the snapshot; from another table, because a read of the row in SERIALIZABLE would lock it.
      await other.ask('SELECT * FROM holdfast_fence LIMIT 1')
      await guard.update(6, { table, set: { content: 'newest' }, where: { id: 1 } })
      const late = other.guard.update(5, { table, set: { content: 'stale' }, where: { id: 1 } })
      await expect(late).rejects.toMatchObject({ code: 'STALE_FENCE', newestFence: 6 })
      await other.ask('ROLLBACK')
      expect(await row()).toEqual({ content: 'newest', fence: 6 })
    },
  )

  it('write the same again, also where the driver counts changed rows only', async () => {
    const { url, table } = await openScene(setting('mysql2'))
    const { createConnection } = await load('mysql2/promise')
    const connection = await createConnection({ uri: url, flags: ['-FOUND_ROWS'] })
    onTestFinished(() => connection.end())
    const update = { table, set: { content: 'same' }, where: { id: 1 } }
    expect(await mysqlGuard(connection).update(5, update)).toBe(true)
    expect(await mysqlGuard(connection).update(5, update)).toBe(true)
    await expect(mysqlGuard(connection).update(4, update)).rejects.toMatchObject({ newestFence: 5 })
  })

  it('cannot be made with callbacks', async () => {
    const { default: mysql } = await load('mysql2')
    const connection = mysql.createConnection(setting('mysql2').url())
    onTestFinished(() => connection.end())
    expect(() => mysqlGuard(connection)).toThrow(/mysql2\/promise/)
    expect(() => mysqlGuard(connection.promise())).not.toThrow()
  })

  async function openOther(url: string): Promise<SqlDatabase> {
    const other = await openSql('mysql2', url)
    onTestFinished(() => other.close())
    return other
  }

  /** Asked on a connection of its own, outside any transaction. */
  async function lockIsWaitedFor(url: string): Promise<void> {
    const { ask } = await openOther(url)
    const waiting = "SELECT 1 FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"
    while ((await ask(waiting)).length === 0) {
      // Asked again at once: each question is a round trip to the server.
    }
  }
})
