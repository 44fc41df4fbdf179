import { afterAll, beforeAll } from 'vitest'
import { mysql } from '../../src/stores/mysql/index.js'
import { describeOn } from '../servers/availability.js'
import { borrowMariadb } from '../servers/mariadb.js'
import { runOn } from './run-on.js'
import { siteOn } from './site.js'

describeOn(
  'mariadb',
  'Web Locks on MariaDB',
  () => {
    let server: Awaited<ReturnType<typeof borrowMariadb>>
    beforeAll(async () => {
      server = await borrowMariadb()
    })
    afterAll(() => server?.stop())
    // A store value for each client: connections of its own, as in another process.
    runOn('mysql', () => siteOn(() => mysql(server.url), { url: server.url }), { part: 2, of: 6 })
  },
  { own: false },
)
