import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { describeOn, serverAvailability } from '../servers/availability.js'
import { borrowPostgres } from '../servers/postgres.js'
import { openSql, type SqlDatabase } from './clients.mjs'
import { describeSqlGuard, openScene, type SqlSetting } from './sql-cases.js'

const reason = serverAvailability('postgres', { own: false })
let server: Awaited<ReturnType<typeof borrowPostgres>> | undefined
beforeAll(async () => {
  if (reason === null) server = await borrowPostgres()
})
afterAll(() => server?.stop())

const setting = (driver: string): SqlSetting => ({
  driver,
  url: () => server?.url ?? '',
  skip: reason ?? undefined,
})

for (const driver of ['pg', 'postgres']) describeSqlGuard(setting(driver))

describeOn(
  'postgres',
  'transactions of PostgreSQL',
  () => {
    it('keep a writer with another fence waiting until they end', async () => {
      const { guard, url, ask } = await openScene(setting('pg'))
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

    it('look at the row again after waiting for it', async () => {
      const { guard, url, ask, table, row } = await openScene(setting('pg'))
      const other = await openOther(url)
      await ask('BEGIN')
      await guard.update(6, { table, set: { content: 'newest' }, where: { id: 1 } })
      const late = other.guard.update(5, { table, set: { content: 'stale' }, where: { id: 1 } })
      const refusal = expect(late).rejects.toMatchObject({ code: 'STALE_FENCE', newestFence: 6 })
      await lockIsWaitedFor(url)
      await ask('COMMIT')
      await refusal
      expect(await row()).toEqual({ content: 'newest', fence: 6 })
    })

    it.each(['REPEATABLE READ', 'SERIALIZABLE'])('in %s let no stale write pass', async (level) => {
      const { guard, url, table, row } = await openScene(setting('pg'))
      const other = await openOther(url)
      await other.ask(`BEGIN ISOLATION LEVEL ${level}`)
      await other.ask(`SELECT * FROM ${table}`)
      await guard.update(6, { table, set: { content: 'newest' }, where: { id: 1 } })
      const late = other.guard.update(5, { table, set: { content: 'stale' }, where: { id: 1 } })
      // The database's own refusal, which a transaction of that level has to expect.
      await expect(late).rejects.toMatchObject({ code: '40001' })
      await other.ask('ROLLBACK')
      expect(await row()).toEqual({ content: 'newest', fence: 6 })
    })

    async function openOther(url: string): Promise<SqlDatabase> {
      const other = await openSql('pg', url)
      onTestFinished(() => other.close())
      return other
    }

    /** Asked on a connection of its own: inside a transaction PostgreSQL shows its activity as it was at the first look. */
    async function lockIsWaitedFor(url: string): Promise<void> {
      const { ask } = await openOther(url)
      const waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%fence%'"
      while ((await ask(waiting)).length === 0) {
        // Asked again at once: each question is a round trip to the server.
      }
    }
  },
  { own: false },
)
