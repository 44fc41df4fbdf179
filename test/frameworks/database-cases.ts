import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type GuardedProgram, testGuard } from './guard-cases.js'
import { compileRecipes } from './recipes.js'

/** What each program of the pages exports. */
interface Program<Pool> extends GuardedProgram {
  readonly pool: Pool & { end(): unknown; on(event: 'error', listener: () => void): unknown }
  sell(id: number): Promise<unknown>
  close?(): Promise<unknown>
}

interface Database {
  readonly url: string
  query(sql: string): Promise<string>
  stop(): Promise<unknown>
}

/** Runs the programs under the headings of a page, on a database that `start` gives. */
export function runDatabaseRecipes<Pool>(
  page: string,
  headings: readonly string[],
  start: () => Promise<Database>,
  createTable: (pool: Pool) => Promise<unknown>,
): void {
  let server: Database
  let recipe: ReturnType<typeof compileRecipes>
  beforeAll(async () => {
    recipe = compileRecipes(page)
    server = await start()
    process.env['DATABASE_URL'] = server.url
    await server.query('create table orders (id int primary key, state varchar(20) not null)')
    await server.query('create table stock (id int primary key, pieces int not null)')
  })
  afterAll(() => server.stop())
  beforeEach(async () => {
    for (const table of ['orders', 'stock']) await server.query(`delete from ${table}`)
    await server.query("insert into orders values (42, 'open')")
    await server.query('insert into stock values (7, 100)')
  })

  describe.each(headings)('%s', (heading) => {
    let program: Program<Pool>
    beforeAll(async () => {
      program = await import(/* @vite-ignore */ pathToFileURL(recipe(heading)).href)
      // The server may end sessions that the pool is about to close itself.
      program.pool.on('error', () => {})
      await createTable(program.pool)
    })
    afterAll(async () => {
      await (program.close?.() ?? program.pool.end())
    })

    testGuard({
      program: () => program,
      stateOf: () => server.query('select state from orders where id = 42'),
      failingWrite: (hold) => program.setState(hold, 42, null as unknown as string),
    })

    it('the transaction lock keeps work apart that reads and then writes', async () => {
      await Promise.all(Array.from({ length: 20 }, () => program.sell(7)))
      expect(await server.query('select pieces from stock')).toBe('80')
    })
  })
}
