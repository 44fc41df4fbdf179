import { it } from 'vitest'
import { eventually, pass } from '../../src/testing/conformance/checks.js'
import type { Crowd } from '../faults/crowd.js'
import { crowdAt, judged, LIMIT_MS, ROUNDS, STALL_MS } from '../faults/postgres.js'
import { describeOn } from '../servers/availability.js'
import { ending } from '../servers/ending.js'
import { type PostgresServer, startPostgres } from '../servers/postgres.js'

/** Each time somebody else of those who are connected. */
const KILL_SOME = `select pg_terminate_backend(pid) from pg_stat_activity
  where backend_type = 'client backend' and pid <> pg_backend_pid() and random() < 0.3`

describeOn('postgres', 'a crowd on a PostgreSQL server in trouble', () => {
  async function crowdOn(): Promise<{ server: PostgresServer; crowd: Crowd }> {
    const server = ending(await startPostgres())
    return { server, crowd: crowdAt(server.url) }
  }

  it('whose connections are terminated at random', { timeout: LIMIT_MS }, async () => {
    const { server, crowd } = await crowdOn()
    for (let round = 0; round < 10 * ROUNDS; round++) {
      await crowd.granted(20)
      await server.query(KILL_SOME)
    }
    await crowd.recovered()
    await judged(crowd)
  })

  it('which is killed and started again', { timeout: LIMIT_MS }, async () => {
    const { server, crowd } = await crowdOn()
    for (let round = 0; round < 2 * ROUNDS; round++) {
      await crowd.granted(30)
      await server.restart({ keepData: true })
      await crowd.recovered()
    }
    await judged(crowd)
  })

  it('which stands still', { timeout: LIMIT_MS }, async () => {
    const { server, crowd } = await crowdOn()
    for (let round = 0; round < ROUNDS; round++) {
      await crowd.granted(30)
      server.pause()
      await pass(STALL_MS)
      server.resume()
      await crowd.recovered()
    }
    await judged(crowd)
  })

  it('which is read-only for a while', { timeout: LIMIT_MS }, async () => {
    const { server, crowd } = await crowdOn()
    const set = async (value: 'on' | 'off'): Promise<void> => {
      await server.query(`alter system set default_transaction_read_only = ${value}`)
      await server.query('select pg_reload_conf()')
      await eventually(
        value,
        async () => (await server.query('show default_transaction_read_only')) === value,
      )
    }
    for (let round = 0; round < ROUNDS; round++) {
      await crowd.granted(30)
      await set('on')
      await pass(STALL_MS)
      await set('off')
      await crowd.recovered()
    }
    await judged(crowd)
  })
})
