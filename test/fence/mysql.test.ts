import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { mysqlGuard } from '../../src/fence/index.js'
import { describeOn } from '../servers/availability.js'
import { borrowMariadb } from '../servers/mariadb.js'
import { load, openSql, type SqlDatabase } from './clients.mjs'
import { describeSqlGuard, openScene, type SqlSetting } from './sql-cases.js'

describeOn(
  'mariadb',
  'MySQL',
  () => {
    let server: Awaited<ReturnType<typeof borrowMariadb>>
    beforeAll(async () => {
      server = await borrowMariadb()
    })
    afterAll(() => server.stop())

    const setting = (driver: string): SqlSetting => ({ driver, url: () => server.url, skip: undefined })
    for (const driver of ['mysql2', 'mariadb']) describeSqlGuard(setting(driver))
    describeTransactions(setting('mysql2'))
  },
  { own: false },
)

function describeTransactions(setting: SqlSetting): void {
  it('a transaction keeps a writer with another fence waiting until it ends', async () => {
    const { guard, url, ask } = await openScene(setting)
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
    'a transaction in %s sees the newest fence, although it shows an old row',
    async (level) => {
      const { guard, url, table, row } = await openScene(setting)
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

  it('a transaction writes the same again, also where the driver counts changed rows only', async () => {
    const { url, table } = await openScene(setting)
    const { createConnection } = await load('mysql2/promise')
    const connection = await createConnection({ uri: url, flags: ['-FOUND_ROWS'] })
    onTestFinished(() => connection.end())
    const update = { table, set: { content: 'same' }, where: { id: 1 } }
    expect(await mysqlGuard(connection).update(5, update)).toBe(true)
    expect(await mysqlGuard(connection).update(5, update)).toBe(true)
    await expect(mysqlGuard(connection).update(4, update)).rejects.toMatchObject({ newestFence: 5 })
  })

  it('a guard cannot be made with callbacks', async () => {
    const { default: mysql } = await load('mysql2')
    const connection = mysql.createConnection(setting.url())
    onTestFinished(() => connection.promise().end())
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
    // InnoDB brings this table up to date only where nobody has read it for 100 ms.
    while ((await ask(waiting)).length === 0) await new Promise((resolve) => setTimeout(resolve, 200))
  }
}
