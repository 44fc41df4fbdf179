import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { postgresGuard } from '../../src/fence/index.js'
import type { Hold } from '../../src/primitives/hold.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { describeOn } from '../servers/availability.js'
import { type PostgresServer, startPostgres } from '../servers/postgres.js'
import { openPgPool } from '../stores/postgres/pools.js'
import { describeInstalled, InstalledProject } from './installed.js'
import { recipesOf } from './recipes.js'

const SCHEMA = `
generator client {
  provider = "prisma-client"
  output   = "./generated"
}
datasource db {
  provider = "postgresql"
}
model Order {
  id    Int    @id
  state String
  @@map("orders")
}
`

interface Program {
  readonly prisma: { $disconnect(): Promise<void> }
  setState(hold: Hold, id: number, state: string): Promise<unknown>
}

function programOf(heading: string): string {
  const found = recipesOf('docs/guides/frameworks/databases.md', 'ts prisma')
  return found.find((recipe) => recipe.heading === heading)?.code ?? ''
}

describeInstalled('prisma', 'inside a transaction of Prisma', () => {
  describeOn('postgres', 'on PostgreSQL', () => {
    const project = new InstalledProject('prisma')
    let server: PostgresServer
    let program: Program

    beforeAll(async () => {
      server = await startPostgres()
      process.env['DATABASE_URL'] = server.url
      await server.query('create table orders (id int primary key, state text not null)')
      await server.query("insert into orders values (42, 'open')")
      const pool = openPgPool(server.url, 1)
      await postgresGuard(pool).createTable()
      await pool.end()
      await project.prepare({ 'schema.prisma': SCHEMA, 'recipe.ts': programOf('## Prisma') })
      // The client is made without the engine, which would be fetched otherwise.
      const env = { PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: '1' }
      await project.run('node_modules/prisma/build/index.js', ['generate', '--schema', 'schema.prisma'], env)
      await project.compile('recipe.ts')
      program = await import(/* @vite-ignore */ pathToFileURL(join(project.folder, 'recipe.js')).href)
    })
    afterAll(async () => {
      await program?.prisma.$disconnect()
      await server.stop()
      project.remove('generated', 'recipe.ts', 'recipe.js')
    })
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
      await expect(program.setState(holdWith(2), 41, 'paid')).rejects.toThrow()
      await program.setState(holdWith(1), 42, 'paid')
      expect(await stateOf()).toBe('paid')
    })
  })
})
