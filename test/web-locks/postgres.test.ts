import { afterAll, beforeAll } from 'vitest'
import { postgres } from '../../src/stores/postgres/index.js'
import { describeOn } from '../servers/availability.js'
import { borrowPostgres } from '../servers/postgres.js'
import { runOn } from './run-on.js'
import { siteOn } from './site.js'

describeOn(
  'postgres',
  'Web Locks on PostgreSQL',
  () => {
    let server: Awaited<ReturnType<typeof borrowPostgres>>
    beforeAll(async () => {
      server = await borrowPostgres()
    })
    afterAll(() => server?.stop())
    // A store value for each client: connections of its own, as in another process.
    runOn('postgres', () => siteOn(() => postgres(server.url), { url: server.url }), { part: 1, of: 6 })
  },
  { own: false },
)
