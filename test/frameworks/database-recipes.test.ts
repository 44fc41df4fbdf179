import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { postgresGuard } from '../../src/fence/index.js'
import type { Hold } from '../../src/primitives/hold.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { describeOn } from '../servers/availability.js'
import { type PostgresServer, startPostgres } from '../servers/postgres.js'
import { compileRecipes } from './recipes.js'

/** What each program of the page exports. */
interface Program {
  readonly pool: Parameters<typeof postgresGuard>[0] & { end(): Promise<void> }
  setState(hold: Hold, id: number, state: string): Promise<unknown>
  sell(id: number): Promise<unknown>
  close?(): Promise<unknown>
}

describeOn('postgres', 'inside a transaction of', () => {
  let server: PostgresServer
  let recipe: ReturnType<typeof compileRecipes>
  beforeAll(async () => {
    recipe = compileRecipes('docs/guides/frameworks/databases.md')
    server = await startPostgres()
    process.env['DATABASE_URL'] = server.url
    await server.query('create table orders (id int primary key, state text not null)')
    await server.query('create table stock (id int primary key, pieces int not null)')
  })
  afterAll(() => server.stop())
  beforeEach(async () => {
    await server.query("truncate orders, stock; insert into orders values (42, 'open')")
    await server.query('insert into stock values (7, 100)')
  })

  describe.each(['## Kysely', '## Drizzle', '## Knex'])('%s', (heading) => {
    let program: Program
    beforeAll(async () => {
      program = await import(/* @vite-ignore */ pathToFileURL(recipe(heading)).href)
      await postgresGuard(program.pool).createTable()
    })
    afterAll(() => program.close?.() ?? program.pool.end())
    const stateOf = () => server.query('select state from orders where id = 42')

    it('a stale fence is refused by the guard', async () => {
      const locks = new Holdfast(memory())
      const old = await locks.mutex('order:42').acquire()
      await locks.breakHold('order:42')
      const newer = await locks.mutex('order:42').acquire()
      await program.setState(newer, 42, 'paid')
      const stale = { code: 'STALE_FENCE', newestFence: newer.fence }
      await expect(program.setState(old, 42, 'cancelled')).rejects.toMatchObject(stale)
      expect(await stateOf()).toBe('paid')
      await program.setState(newer, 42, 'shipped')
      expect(await stateOf()).toBe('shipped')
      await locks.close({ drain: 0 })
    })

    it('work that throws leaves no fence behind', async () => {
      const holdWith = (fence: number) => ({ resource: 'order:43', fence, isExclusive: true }) as Hold
      await expect(program.setState(holdWith(2), 42, null as unknown as string)).rejects.toThrow()
      await program.setState(holdWith(1), 42, 'paid')
      expect(await stateOf()).toBe('paid')
    })

    it('the transaction lock keeps work apart that reads and then writes', async () => {
      await Promise.all(Array.from({ length: 20 }, () => program.sell(7)))
      expect(await server.query('select pieces from stock')).toBe('80')
    })
  })
})
