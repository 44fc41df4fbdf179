import { describe, expect, it, onTestFinished } from 'vitest'
import { openSql, type SqlDatabase } from './clients.mjs'
import { pausedWorkerIsRefused, tempFolder } from './paused.js'

const stale = (newestFence: number): object => ({ code: 'STALE_FENCE', newestFence })
const hold = (
  fence: number,
  resource = 'order:42',
): { resource: string; fence: number; isExclusive: boolean } => ({
  resource,
  fence,
  isExclusive: true,
})
/** Guards of SQLite throw, the others reject. */
const attempt = async <T>(work: () => T | Promise<T>): Promise<T> => work()

/** As large as fences really are: microseconds since 1970. */
const OLD = 1_790_000_000_000_000
const NEW = 1_790_000_000_000_001

export interface SqlSetting {
  driver: string
  /** Gives the URL of a server, or makes a file. */
  url(): string
  /** Why it cannot run here; undefined: it can. */
  skip: string | undefined
}

export interface SqlScene extends SqlDatabase {
  url: string
  table: string
  row(): Promise<{ content: string | null; fence: number | null } | undefined>
}

let tables = 0

/** A database with a table of its own: one row, which was never written under a fence. */
export async function openScene({ driver, url: place }: SqlSetting): Promise<SqlScene> {
  const url = place()
  const database = await openSql(driver, url)
  tables += 1
  const table = `fenced_${process.pid}_${tables}`
  onTestFinished(async () => {
    await database.ask(`DROP TABLE ${table}`)
    await database.close()
  })
  await database.ask(
    `CREATE TABLE ${table} (id BIGINT PRIMARY KEY, content VARCHAR(50), fence BIGINT, seen BIGINT)`,
  )
  await database.ask(`INSERT INTO ${table} (id, content) VALUES (1, 'initial')`)
  await database.guard.createTable()
  const row = async () => {
    const [found] = await database.ask(`SELECT content, fence FROM ${table} WHERE id = 1`)
    return found && { content: found.content, fence: found.fence === null ? null : Number(found.fence) }
  }
  return { ...database, url, table, row }
}

/** What every SQL guard does, whatever the database and the driver. */
export function describeSqlGuard(setting: SqlSetting): void {
  describe.skipIf(setting.skip)(
    `a guarded write, ${setting.driver}${setting.skip ? ` (${setting.skip})` : ''}`,
    () => {
      it('takes newer and equal fences, and refuses older ones', async () => {
        const { guard, table, row } = await openScene(setting)
        const write = (fence: number, content: string) =>
          attempt(() => guard.update(hold(fence), { table, set: { content }, where: { id: 1 } }))
        expect(await row()).toEqual({ content: 'initial', fence: null })
        expect(await write(OLD, 'a')).toBe(true)
        expect(await write(NEW, 'b')).toBe(true)
        expect(await write(NEW, 'c')).toBe(true)
        expect(await write(NEW, 'c')).toBe(true)
        await expect(write(OLD, 'late')).rejects.toMatchObject({ ...stale(NEW), resource: 'order:42' })
        expect(await row()).toEqual({ content: 'c', fence: NEW })
      })

      it('tells a missing row from a refused one', async () => {
        const { guard, table } = await openScene(setting)
        const update = { table, set: { content: 'x' }, where: { id: 2 } }
        expect(await guard.update(hold(OLD), update)).toBe(false)
        expect(await guard.explain(hold(OLD), update)).toBe(false)
        expect(await guard.explain(hold(OLD), { table, where: { id: 1 } })).toBe(true)
      })

      it('takes another column, conditions with NULL, and the largest fence', async () => {
        const { guard, table, ask } = await openScene(setting)
        const row = { table, column: 'seen', where: { id: 1, fence: null } }
        const largest = Number.MAX_SAFE_INTEGER
        expect(await guard.update(largest, { ...row, set: { content: null } })).toBe(true)
        await expect(attempt(() => guard.update(largest - 1, { ...row, set: {} }))).rejects.toMatchObject(
          stale(largest),
        )
        const [found] = await ask(`SELECT content, fence, seen FROM ${table} WHERE id = 1`)
        expect([found.content, found.fence, Number(found.seen)]).toEqual([null, null, largest])
      })

      it('refuses what cannot be meant', async () => {
        const { guard, table, ask } = await openScene(setting)
        const where = { id: 1 }
        const wrong: [unknown, object][] = [
          [
            { ...hold(1), isExclusive: false },
            { table, set: {}, where },
          ],
          [hold(0), { table, set: {}, where }],
          [2 ** 53, { table, set: {}, where }],
          [hold(1), { table, set: { fence: 9 }, where }],
          [hold(1), { table, set: {}, where: {} }],
          [hold(1), { table, set: { content: undefined }, where }],
          [hold(1), { table, set: {}, where: { id: undefined } }],
          [hold(1), { table: '', set: {}, where }],
        ]
        for (const [who, update] of wrong)
          await expect(attempt(() => guard.update(who, update))).rejects.toMatchObject({
            code: 'INVALID_ARGUMENT',
          })
        await expect(attempt(() => guard.check({ ...hold(1), isExclusive: false }))).rejects.toMatchObject({
          code: 'INVALID_ARGUMENT',
        })
        await expect(attempt(() => guard.check(5))).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
        await ask(`INSERT INTO ${table} (id, content) VALUES (2, 'initial')`)
        const both = { table, set: { content: 'x' }, where: { content: 'initial' } }
        await expect(attempt(() => guard.update(hold(1), both))).rejects.toThrow(/2 rows/)
      })

      it('puts names into quotes', async () => {
        const { guard, table } = await openScene(setting)
        const update = { table, set: { 'content" = 1 -- `': 'x' }, where: { id: 1 } }
        await expect(attempt(() => guard.update(hold(1), update))).rejects.toThrow(/content" = 1 -- `/)
      })

      it('keeps a number for each resource in the side table, whatever its name', async () => {
        const { guard } = await openScene(setting)
        const own = `test ${process.pid} ${Math.random()}`
        const names = [own, `${own} `, own.toUpperCase(), `${own}\0`, `${own}é`, `${own}e\u0301`, `${own}😀`]
        const long = own.padEnd(8000, 'x')
        for (const [index, name] of [...names, long, `${long}y`].entries())
          await guard.check(hold(OLD - index, name))
        for (const [index, name] of [...names, long, `${long}y`].entries()) {
          await guard.check(hold(OLD - index, name))
          await expect(attempt(() => guard.check(hold(OLD - index - 1, name)))).rejects.toMatchObject(
            stale(OLD - index),
          )
        }
      })

      it('gives the SQL for a statement of your own', async () => {
        const { guard, table, ask, row } = await openScene(setting)
        const write = async (fence: number) => {
          const sql = guard.sql(hold(fence))
          await ask(`UPDATE ${table} SET content = '${fence}', ${sql.set} WHERE id = 1 AND ${sql.where}`)
          return guard.explain(hold(fence), { table, where: { id: 1 } })
        }
        expect(await write(NEW)).toBe(true)
        await expect(write(OLD)).rejects.toMatchObject(stale(NEW))
        expect(await row()).toEqual({ content: String(NEW), fence: NEW })
      })

      it.each(['row', 'table', 'statement'])('stops a worker that was paused: %s', async (kind) => {
        const { url, table, row } = await openScene(setting)
        const target = { kind, driver: setting.driver, url, table }
        await pausedWorkerIsRefused(target, async () => (await row())?.content)
      })
    },
  )
}

export function sqliteFile(): string {
  return `${tempFolder()}/data.db`
}
