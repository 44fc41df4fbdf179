import { startPgBouncer } from '../servers/pgbouncer.js'
import { runCasesOnPostgres } from '../stores/postgres/conformance.js'

runCasesOnPostgres('pg', 'postgres behind PgBouncer in transaction mode', startPgBouncer, {
  needs: 'pgbouncer',
  share: { part: 2, of: 13 },
})
