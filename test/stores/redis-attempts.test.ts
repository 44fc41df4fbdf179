import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, expect, it } from 'vitest'
import { EXCLUSIVE } from '../../src/contract/constants.js'
import type { ClaimRequest, Connection } from '../../src/contract/store.js'
import { redis } from '../../src/stores/redis/index.js'
import { inTime, pass, settled } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { type RedisServer, startRedis } from '../servers/redis.js'

const REPLICA_TIMEOUT_MS = 1500

/** The first attempt waits for a replica for longer than its caller does, who asks again under the same id. */
describeOn('redis', 'two attempts of one claim at Redis', () => {
  const endings: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const end of endings.splice(0)) await end()
  })

  const start = async (...args: string[]): Promise<RedisServer> => {
    const server = await startRedis({ args })
    endings.unshift(() => server.stop())
    return server
  }
  const connect = (server: RedisServer): Connection => {
    const options = { replicas: 1, replicaTimeout: REPLICA_TIMEOUT_MS }
    const connection = redis(server.url, options).connect({ id: 'client', space: 's', push: () => {} })
    endings.unshift(() => connection.close())
    return connection
  }
  const claimOf = (id: string): ClaimRequest => {
    const times = { leaseMs: 60_000, presenceMs: 60_000, maxHoldMs: null }
    const rest = {
      mode: 'queue' as const,
      floor: 0,
      block: 1,
      info: '',
      permits: EXCLUSIVE,
      capacity: EXCLUSIVE,
    }
    return { resource: 'door', id, ...times, ...rest }
  }

  it('a first one that no replica has does not take back what the second one was given', async () => {
    const master = await start()
    const follows = ['--replicaof', '127.0.0.1', String(master.port), '--repl-diskless-sync-delay', '0']
    const replica = await start(...follows)
    await master.hasReplica()
    const connection = connect(master)
    await connection.claim(claimOf('before'))
    await connection.release('door', 'before')
    // Where this process stands still, the replica may come back too late for the second one, or in time for the first.
    for (let round = 0; ; round++) {
      const id = `a${round}`
      replica.pause()
      const first = settled(Promise.resolve(connection.claim(claimOf(id))))
      // What is asked for in one turn travels as one command.
      await turn()
      const second = settled(Promise.resolve(connection.claim(claimOf(id))))
      await pass(1.2 * REPLICA_TIMEOUT_MS)
      replica.resume()
      const [early, late] = await inTime('both answers', Promise.all([first, second]))
      const isGranted = 'value' in late && late.value.status === 'granted'
      if ('error' in early && isGranted) {
        const [reply] = await connection.pulse([
          { resource: 'door', id, leaseMs: 60_000, presenceMs: 60_000 },
        ])
        expect(reply?.status).toBe('held')
        return
      }
      await connection.release('door', id)
    }
  })
})
