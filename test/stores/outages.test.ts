import { expect, it } from 'vitest'
import type { HoldfastError } from '../../src/base/errors.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { describeOn } from '../servers/availability.js'
import { startMariadb } from '../servers/mariadb.js'
import { startPostgres } from '../servers/postgres.js'
import { startRedis } from '../servers/redis.js'
import { startZooKeeper } from '../servers/zookeeper.js'

const SERVERS = {
  redis: startRedis,
  postgres: startPostgres,
  mariadb: startMariadb,
  zookeeper: async () => {
    const server = await startZooKeeper()
    return Object.assign(server, { url: `zookeeper://${server.address}` })
  },
} as const

const POLL = { timeout: 30_000 }

const unavailable = async (call: Promise<unknown>): Promise<HoldfastError> => {
  const error = await call.then(
    () => new Error('it was granted'),
    (reason: HoldfastError) => reason,
  )
  expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
  return error as HoldfastError
}

for (const [name, start] of Object.entries(SERVERS))
  describeOn(name as keyof typeof SERVERS, `${name} that is down while callers wait`, () => {
    for (const outage of ['frozen', 'killed'])
      it.concurrent(`${outage}: a wait that ends is STORE_UNAVAILABLE with its cause, not ACQUIRE_TIMEOUT`, {
        timeout: 120_000,
      }, async (context) => {
        const server = await start()
        context.onTestFinished(async () => void (await server.stop()))
        const others = await Holdfast.open(server.url)
        const locks = await Holdfast.open(server.url, { storeTimeout: '1m' })
        await others.mutex('door').acquire({ lease: '10m' })
        // One in line, and one behind it in this process; long enough that both are there when the server falls silent.
        const waits = [1, 2].map(() => locks.mutex('door').acquire({ wait: '5s', lease: '10m' }))
        const inLine = waits.map(unavailable)
        await context.expect
          .poll(async () => (await others.inspect().next()).value?.waiters.length, POLL)
          .toBe(1)
        if (outage === 'frozen') server.pause()
        else await server.kill()
        const fresh = [
          unavailable(locks.mutex('gate').acquire({ wait: '1s' })),
          unavailable(locks.latch('ready', 1).wait({ wait: '1s' })),
        ]
        for (const error of await Promise.all([...inLine, ...fresh])) {
          expect(error.cause).toBeInstanceOf(Error)
          expect(error.message).not.toMatch(/storeTimeout|inspect/)
        }
        if (outage === 'frozen') server.resume()
        else await server.restart({ keepData: true })
        await Promise.all([locks, others].map((each) => each.close({ drain: 0 })))
      })
  })
