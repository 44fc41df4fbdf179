import { afterAll, afterEach, expect, it } from 'vitest'
import { now } from '../../src/testing/conformance/checks.js'
import { crowdAt, judged, LIMIT_MS, Losses, ROUNDS } from '../faults/redis.js'
import { describeOn } from '../servers/availability.js'
import { ending } from '../servers/ending.js'
import { dropPackets, packetLossAvailability } from '../servers/packet-loss.js'
import type { RedisServer } from '../servers/redis.js'
import { startRedisCluster } from '../servers/redis-cluster.js'
import { startRedisSentinel } from '../servers/redis-sentinel.js'
import { WallClock } from '../servers/wall-clock.js'

const clock = new WallClock()
const noClock = clock.obstacle
const noLoss = packetLossAvailability()

describeOn('redis', 'fail-over of Redis', () => {
  afterEach(() => clock.set(0))
  afterAll(() => clock.dispose())

  it('Sentinel: everybody finds the new master', { timeout: LIMIT_MS }, async () => {
    const group = ending(await startRedisSentinel())
    const crowd = crowdAt(group.url)
    const losses = new Losses()
    for (let round = 0; round < ROUNDS; round++) {
      await crowd.granted(30)
      const [old, from] = [await group.master(), now()]
      await group.killMaster()
      losses.add(from, now())
      await crowd.recovered()
      await old.restart({ keepData: true })
      await group.replicating()
    }
    expect(crowd.judge.fallen).toEqual([])
    await judged(crowd, losses.excuse)
  })

  it('Cluster: everybody finds the new master', { timeout: LIMIT_MS }, async () => {
    const cluster = ending(await startRedisCluster())
    const crowd = crowdAt(cluster.url)
    const losses = new Losses()
    for (let round = 0; round < ROUNDS; round++) {
      await crowd.granted(30)
      const [old, from] = [await cluster.masterOf('one'), now()]
      await cluster.killMaster('one')
      losses.add(from, now())
      await crowd.recovered()
      await old.restart({ keepData: true })
      await cluster.serving()
    }
    expect(crowd.judge.fallen).toEqual([])
    await judged(crowd, losses.excuse)
  })

  it.skipIf(noClock)(
    `to a replica whose clock is ten seconds behind: fences go on upwards${noClock ? ` (skipped: ${noClock})` : ''}`,
    { timeout: LIMIT_MS },
    async () => {
      const { crowd, losses } = await failOver({ offsetS: -10, lacksLastGrants: false })
      await judged(crowd, losses.excuse)
    },
  )

  it.skipIf(noLoss)(
    `to a replica that lacks the last grants: fences go on upwards${noLoss ? ` (skipped: ${noLoss})` : ''}`,
    { timeout: LIMIT_MS },
    async () => {
      const { crowd, losses } = await failOver({ offsetS: 0, lacksLastGrants: true })
      expect(crowd.judge.fallen).toEqual([])
      await judged(crowd, losses.excuse)
    },
  )

  const obstacle = noClock ?? noLoss
  it.skipIf(obstacle)(
    `to a replica that lacks them and is behind: fences can fall, then and only then${obstacle ? ` (skipped: ${obstacle})` : ''}`,
    { timeout: LIMIT_MS },
    async () => {
      // Not every time: whoever comes first at the new master may be the one who knows the last fence, and asks for one above it.
      let lowered = 0
      for (let attempt = 0; attempt < 10 && lowered === 0; attempt++) {
        const { crowd, losses } = await failOver({ offsetS: -10, lacksLastGrants: true })
        lowered = crowd.judge.lowered.length
        await judged(crowd, losses.excuse)
      }
      expect(lowered).toBeGreaterThan(0)
    },
  )

  async function failOver(replica: { offsetS: number; lacksLastGrants: boolean }) {
    clock.set(replica.offsetS)
    const group = ending(await startRedisSentinel((index) => (index === 1 && !noClock ? { clock } : {})))
    const crowd = crowdAt(group.url)
    const losses = new Losses()
    await crowd.granted(30)
    const [primary] = group.nodes
    const from = now()
    const cut = replica.lacksLastGrants
      ? await dropPackets(primary.port, 1, await replicaPortOf(primary))
      : { heal() {} }
    await crowd.granted(30)
    await group.killMaster()
    losses.add(from, now())
    cut.heal()
    await crowd.recovered()
    return { crowd, losses }
  }
})

/** The port at the replica's end of its connection to the primary. */
async function replicaPortOf(primary: RedisServer): Promise<number> {
  const list = await primary.cli('client', 'list', 'type', 'replica')
  return Number(/ addr=127\.0\.0\.1:(\d+)/.exec(list)?.[1])
}
