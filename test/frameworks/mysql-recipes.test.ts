import { type MysqlClient, mysqlGuard } from '../../src/fence/index.js'
import { describeOn } from '../servers/availability.js'
import { startMariadb } from '../servers/mariadb.js'
import { runDatabaseRecipes } from './database-cases.js'

/** A pool of mysql2 with callbacks has one with promises in it. */
type Pool = MysqlClient & { promise?(): MysqlClient }

describeOn('mariadb', 'inside a transaction of', () => {
  runDatabaseRecipes<Pool>(
    'docs/guides/frameworks/databases-mysql.md',
    ['## Kysely', '## Drizzle', '## Knex'],
    () => startMariadb(),
    (pool) => mysqlGuard(pool.promise?.() ?? pool).createTable(),
  )
})
