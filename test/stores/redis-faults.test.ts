import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Holdfast } from '../../src/index.js'
import { redis } from '../../src/stores/redis/index.js'
import { eventually, inTime } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { type RedisServer, startRedis } from '../servers/redis.js'

/** Long where nothing is to be lost, however long a restart takes. Where it is, the holder learns of it in a third of its lease. */
const [LONG_LEASE_MS, SHORT_LEASE_MS] = [20_000, 3000]

interface Fault {
  /** Whether the lines are there afterwards. */
  keepsLines: boolean
  strike(server: RedisServer): Promise<unknown>
}

const FAULTS: Record<string, Fault> = {
  'CLIENT KILL of every connection': { keepsLines: true, strike: (server) => server.dropClients() },
  'CLIENT KILL of those that listen': {
    keepsLines: true,
    strike: (server) => server.cli('client', 'kill', 'type', 'pubsub'),
  },
  'SCRIPT FLUSH': { keepsLines: true, strike: (server) => server.cli('script', 'flush') },
  'kill -9 and a restart with its data': {
    keepsLines: true,
    strike: (server) => server.restart({ keepData: true }),
  },
  'kill -9 and a restart without its data': {
    keepsLines: false,
    strike: (server) => server.restart({ keepData: false }),
  },
  FLUSHALL: { keepsLines: false, strike: (server) => server.cli('flushall') },
}

describeOn('redis', 'the Redis store goes on by itself', () => {
  let server: RedisServer
  const clients: Holdfast[] = []
  beforeAll(async () => {
    server = await startRedis({ persistence: 'always' })
  })
  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close({ drain: 0 })))
  })
  afterAll(() => server.stop())

  describe.each(['ioredis', 'redis', 'iovalkey'] as const)('through %s', (driver) => {
    const client = (): Holdfast => {
      const made = new Holdfast(redis(server.url, { driver }))
      clients.push(made)
      return made
    }

    it.each(Object.entries(FAULTS))('after %s', async (title, { keepsLines, strike }) => {
      const name = `${driver} ${title}`
      const lease = keepsLines ? LONG_LEASE_MS : SHORT_LEASE_MS
      const holder = await client().mutex(name).acquire({ lease })
      const next = client().mutex(name).acquire({ lease })
      await queued(name, 1)
      await strike(server)
      if (keepsLines) {
        await holder.extend(lease)
        expect(await holder.release()).toBe(true)
      } else {
        await eventually('the loss', () => holder.signal.aborted)
        expect(await holder.release()).toBe(false)
      }
      const hold = await inTime('the next one', next)
      expect(hold.isValid).toBe(true)
      expect(hold.fence).toBeGreaterThan(holder.fence)
      expect(await hold.release()).toBe(true)
    })

    it('whatever happens while many contend, never two at a time', async () => {
      const name = `${driver} mill`
      const workers = Array.from({ length: 4 }, () => client())
      let [inside, turns, isOver] = [0, 0, false]
      const fences: number[] = []
      const work = async (locks: Holdfast): Promise<void> => {
        while (!isOver) {
          const hold = await locks.mutex(name).acquire({ lease: LONG_LEASE_MS })
          expect(++inside).toBe(1)
          fences.push(hold.fence)
          await new Promise(setImmediate)
          inside--
          turns++
          await hold.release()
        }
      }
      const all = workers.flatMap((locks) => [work(locks), work(locks)])
      const faults = Object.entries(FAULTS).filter(([, fault]) => fault.keepsLines)
      for (const [title, { strike }] of faults) {
        const before = turns
        await eventually(`turns before ${title}`, () => turns > before + 20)
        await strike(server)
        const after = turns
        await eventually(`turns after ${title}`, () => turns > after + 20)
      }
      isOver = true
      await inTime('the end of all', Promise.all(all))
      expect(fences).toEqual(fences.toSorted((a, b) => a - b))
    })
  })

  async function queued(name: string, count: number): Promise<void> {
    const bystander = new Holdfast(redis(server.url))
    await eventually(`${count} waiting for ${name}`, async () => {
      for await (const line of bystander.inspect({ prefix: name }))
        if (line.waiters.length === count) return true
      return false
    })
    await bystander.close()
  }
})
