import { postgresGuard } from '../../src/fence/index.js'
import { describeOn } from '../servers/availability.js'
import { startPostgres } from '../servers/postgres.js'
import { runDatabaseRecipes } from './database-cases.js'

describeOn('postgres', 'inside a transaction of', () => {
  runDatabaseRecipes<Parameters<typeof postgresGuard>[0]>(
    'docs/guides/frameworks/databases.md',
    ['## Kysely', '## Drizzle', '## Knex'],
    () => startPostgres(),
    (pool) => postgresGuard(pool).createTable(),
  )
})
