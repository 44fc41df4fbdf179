import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createPool } from 'mysql2/promise'
import { afterAll, beforeAll } from 'vitest'
import { mysqlGuard, postgresGuard } from '../../src/fence/index.js'
import { describeOn } from '../servers/availability.js'
import { startMariadb } from '../servers/mariadb.js'
import { startPostgres } from '../servers/postgres.js'
import { openPgPool } from '../stores/postgres/pools.js'
import { type GuardedProgram, testGuard } from './guard-cases.js'
import { describeInstalled, InstalledProject } from './installed.js'
import { recipeOf } from './recipes.js'

const schemaFor = (provider: string): string => `
generator client {
  provider = "prisma-client"
  output   = "./generated"
}
datasource db {
  provider = "${provider}"
}
model Order {
  id    Int    @id
  state String
  @@map("orders")
}
`

interface PrismaProgram extends GuardedProgram {
  readonly prisma: { $disconnect(): Promise<void> }
}

interface Database {
  readonly url: string
  query(sql: string): Promise<string>
  stop(): Promise<unknown>
}

function programOf(page: string): string {
  return recipeOf(page, '## Prisma', { language: 'ts prisma' })
}

describeInstalled('prisma', 'inside a transaction of Prisma', () => {
  describeOn('postgres', 'on PostgreSQL', () => {
    declare('postgresql', programOf('docs/guides/frameworks/databases.md'), {
      start: () => startPostgres(),
      async createTable(url) {
        const pool = openPgPool(url, 1)
        await postgresGuard(pool).createTable()
        await pool.end()
      },
    })
  })

  describeOn('mariadb', 'on MariaDB', () => {
    declare('mysql', programOf('docs/guides/frameworks/databases-mysql.md'), {
      start: () => startMariadb(),
      async createTable(url) {
        const pool = createPool(url)
        await mysqlGuard(pool).createTable()
        await pool.end()
      },
    })
  })
})

function declare(
  provider: string,
  code: string,
  { start, createTable }: { start(): Promise<Database>; createTable(url: string): Promise<void> },
): void {
  const project = new InstalledProject('prisma', provider)
  let server: Database
  let program: PrismaProgram

  beforeAll(async () => {
    server = await start()
    process.env['DATABASE_URL'] = server.url
    await server.query('create table orders (id int primary key, state varchar(20) not null)')
    await server.query("insert into orders values (42, 'open')")
    await createTable(server.url)
    await project.prepare({ 'schema.prisma': schemaFor(provider), 'recipe.ts': code })
    // The client is made without the engine, which would be fetched otherwise.
    const env = { PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: '1' }
    const generate = ['generate', '--schema', 'schema.prisma']
    await project.run('../node_modules/prisma/build/index.js', generate, env)
    await project.compile('recipe.ts')
    program = await import(/* @vite-ignore */ pathToFileURL(join(project.folder, 'recipe.js')).href)
  })
  afterAll(async () => {
    await program?.prisma.$disconnect()
    await server.stop()
    project.remove('generated', 'recipe.ts', 'recipe.js')
  })

  testGuard({
    program: () => program,
    stateOf: () => server.query('select state from orders where id = 42'),
    // Prisma throws where there is no such order.
    failingWrite: (hold) => program.setState(hold, 41, 'paid'),
  })
}
