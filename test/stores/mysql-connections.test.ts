import { createConnection } from 'mysql2/promise'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import type { Connection } from '../../src/contract/store.js'
import { mysql } from '../../src/stores/mysql/index.js'
import { joinRoutine } from '../../src/stores/mysql/sql/calls.js'
import { namesOf } from '../../src/stores/mysql/sql/names.js'
import { eventually, rejectsWith } from '../../src/testing/conformance/checks.js'
import { claimOf } from '../../src/testing/conformance/scene.js'
import { describeOn } from '../servers/availability.js'
import { type MariadbServer, startMariadb } from '../servers/mariadb.js'

describeOn('mariadb', 'the connections of the MySQL store', () => {
  let server: MariadbServer
  beforeAll(async () => {
    server = await startMariadb()
  })
  afterAll(() => server.stop())

  const drivers = ['mysql2', 'mariadb'] as const

  /** Through a pool of one connection. */
  function connect(driver: (typeof drivers)[number], prefix: string, url = server.url): Connection {
    const store = mysql(url, { driver, prefix, connections: 1 })
    const connection = store.connect({ id: 'client', space: 'space', push: () => {} })
    onTestFinished(() => connection.close())
    return connection
  }

  it.each(drivers)(
    'of %s are not used again after KILL QUERY has left a transaction open',
    async (driver) => {
      const prefix = driver
      const connection = connect(driver, prefix)
      for (const name of ['busy', 'free']) await connection.claim(claimOf(name, 'one'))
      await connection.release('free', 'one')
      // Its last step takes so long that the call is interrupted there.
      const slow = joinRoutine(namesOf(prefix)).replace(
        /COMMIT;(?=\s*SELECT)/,
        'WHILE TRUE DO SET v_now = 0; END WHILE;',
      )
      const administrator = await createConnection(server.url)
      onTestFinished(() => administrator.end())
      await administrator.query(`drop procedure ${prefix}_join`)
      await administrator.query(slow)
      const claim = async (name: string): Promise<unknown> => connection.claim(claimOf(name, 'two'))
      const refused = rejectsWith('STORE_UNAVAILABLE', claim('busy'))
      const working =
        "select id from information_schema.processlist where command = 'Query' and id <> connection_id()"
      await eventually('the interruption', async () => {
        const id = await server.query(working)
        if (id !== '') await server.query(`kill query ${id}`)
        return id !== ''
      })
      expect((await refused).message).toMatch(/interrupted/)
      expect(await connection.claim(claimOf('free', 'two'))).toMatchObject({ status: 'granted' })
      const isAlone = `select is_alone from ${prefix}_line where resource = 'free'`
      expect(await server.query(isAlone)).toBe('1')
    },
  )

  it.each(drivers)('of %s are not used again once their server has become read-only', async (driver) => {
    const user = `user_${driver}`
    // read_only does not bind those with all rights.
    await server.query(`create user ${user}@localhost; grant all on test.* to ${user}@localhost`)
    const url = server.url.replace('root@', `${user}@`)
    const connection = connect(driver, `read_only_${driver}`, url)
    await connection.claim(claimOf('door', 'one'))
    const idQuery = `select id from information_schema.processlist where user = '${user}'`
    const id = await server.query(idQuery)
    await server.query('set global read_only = 1')
    onTestFinished(async () => void (await server.query('set global read_only = 0')))
    const claim = async (): Promise<unknown> => connection.claim(claimOf('door', 'two'))
    const error = await rejectsWith('STORE_UNAVAILABLE', claim())
    expect(error.message).toMatch(/read-only/)
    // As if another server had the address now.
    await eventually('the end of the connection', async () => (await server.query(idQuery)) !== id)
    await server.query('set global read_only = 0')
    expect(await connection.claim(claimOf('door', 'two'))).toMatchObject({ status: 'waiting' })
  })
})
