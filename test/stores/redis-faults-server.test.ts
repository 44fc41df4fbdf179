import { expect, it } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { redis } from '../../src/stores/redis/index.js'
import { eventually, now, pass } from '../../src/testing/conformance/checks.js'
import type { Crowd } from '../faults/crowd.js'
import { crowdAt, judged, LEASE_MS, LIMIT_MS, Losses, ROUNDS, STALL_MS } from '../faults/redis.js'
import { describeOn } from '../servers/availability.js'
import { ending } from '../servers/ending.js'
import { dropPackets, packetLossAvailability } from '../servers/packet-loss.js'
import { type RedisOptions, type RedisServer, startRedis } from '../servers/redis.js'

const noLoss = packetLossAvailability()

describeOn('redis', 'faults of a Redis server', () => {
  async function crowdOn(options: RedisOptions = {}): Promise<{ server: RedisServer; crowd: Crowd }> {
    const server = ending(await startRedis(options))
    return { server, crowd: crowdAt(server.url) }
  }

  it('kill -9 and a restart with its data: nothing is lost', { timeout: LIMIT_MS }, async () => {
    const { server, crowd } = await crowdOn({ persistence: 'always' })
    const keeper = new Holdfast(redis(server.url))
    const kept = await keeper.mutex('kept').acquire({ lease: 60_000 })
    for (let round = 0; round < 3 * ROUNDS; round++) {
      await crowd.granted(30)
      await server.restart({ keepData: true })
      await crowd.recovered()
    }
    expect(kept.isValid).toBe(true)
    expect(await kept.release()).toBe(true)
    await keeper.close()
    await judged(crowd)
  })

  it('kill -9 and a restart without its data: holders are told', { timeout: LIMIT_MS }, async () => {
    const { server, crowd } = await crowdOn()
    await forgetting(server, crowd, () => server.restart({ keepData: false }))
  })

  it('FLUSHALL: the same', { timeout: LIMIT_MS }, async () => {
    const { server, crowd } = await crowdOn()
    await forgetting(server, crowd, () => server.cli('flushall'))
  })

  /** A hold from before can meet one from after, until its holder is told; fences go on upwards. */
  async function forgetting(
    server: RedisServer,
    crowd: Crowd,
    forget: () => Promise<unknown>,
  ): Promise<void> {
    const keeper = new Holdfast(redis(server.url))
    const losses = new Losses()
    for (let round = 0; round < 3 * ROUNDS; round++) {
      const kept = await keeper.mutex('kept').acquire({ lease: LEASE_MS })
      await crowd.granted(30)
      const from = now()
      await forget()
      // What was granted before is on its way, if not here: it belongs to the time before.
      for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
      losses.add(from, now())
      await eventually('the loss', () => kept.signal.aborted)
      await crowd.recovered()
    }
    await keeper.close()
    expect(crowd.judge.fallen).toEqual([])
    await judged(crowd, losses.excuse)
  }

  it('CLIENT KILL of every connection, again and again', { timeout: LIMIT_MS }, async () => {
    const { server, crowd } = await crowdOn()
    for (let round = 0; round < 5 * ROUNDS; round++) {
      await crowd.granted(30)
      await server.dropClients()
      await crowd.recovered()
    }
    await judged(crowd)
  })

  it('SCRIPT FLUSH, again and again: nobody notices', { timeout: LIMIT_MS }, async () => {
    const server = ending(await startRedis())
    // Nobody at all: so no lease may end because the machine stood still.
    const crowd = crowdAt(server.url, 6 * LEASE_MS)
    for (let round = 0; round < 10 * ROUNDS; round++) {
      await crowd.granted(30)
      await server.cli('script', 'flush')
    }
    await crowd.recovered()
    expect(crowd.judge.losses + crowd.judge.unavailable).toBe(0)
    await judged(crowd)
  })

  it('a stall longer than the lease: holders know by the end of their time', {
    timeout: LIMIT_MS,
  }, async () => {
    const { server, crowd } = await crowdOn()
    const keeper = new Holdfast(redis(server.url))
    for (let round = 0; round < ROUNDS; round++) {
      const kept = await keeper.mutex('kept').acquire({ lease: LEASE_MS })
      await crowd.granted(30)
      server.pause()
      const validUntil = now() + LEASE_MS
      await eventually('the end of its time', () => {
        const isOver = now() > validUntil
        if (isOver) expect(kept.isValid).toBe(false)
        return isOver
      })
      await eventually('the report of it', () => kept.signal.aborted)
      await pass(STALL_MS - LEASE_MS)
      server.resume()
      await crowd.recovered()
    }
    await keeper.close()
    await judged(crowd)
  })

  it.skipIf(noLoss)(
    `three packets in ten are lost${noLoss ? ` (skipped: ${noLoss})` : ''}`,
    { timeout: LIMIT_MS },
    async () => {
      const { server, crowd } = await crowdOn()
      for (let round = 0; round < ROUNDS; round++) {
        await crowd.granted(30)
        const from = now()
        const loss = await dropPackets(server.port, 0.3)
        await pass(STALL_MS)
        await crowd.granted(30)
        loss.heal()
        // TCP doubles its pauses: a connection that was silent for a time can be so for as long again.
        await crowd.recovered(now() - from)
      }
      await judged(crowd)
    },
  )
})
