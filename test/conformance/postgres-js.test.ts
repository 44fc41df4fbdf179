import { borrowPostgres } from '../servers/postgres.js'
import { runCasesOnPostgres } from '../stores/postgres/conformance.js'

runCasesOnPostgres('postgres', 'postgres through postgres.js', borrowPostgres, {
  own: false,
  share: { part: 1, of: 9 },
  strict: { part: 4, of: 11 },
})
