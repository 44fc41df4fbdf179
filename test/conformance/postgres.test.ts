import { borrowPostgres } from '../servers/postgres.js'
import { runCasesOnPostgres } from '../stores/postgres/conformance.js'

runCasesOnPostgres('pg', 'postgres through one pool of pg', borrowPostgres, {
  own: false,
  share: { part: 0, of: 7 },
  strict: { part: 3, of: 9 },
})
