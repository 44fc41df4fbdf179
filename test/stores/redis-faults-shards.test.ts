import { expect, it, onTestFinished } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { redis } from '../../src/stores/redis/index.js'
import { eventually, now } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { startRedisCluster } from '../servers/redis-cluster.js'

/** Less than an answer of the dead one is waited for, and with time for a machine that stands still. */
const LEASE_MS = 4500

describeOn('redis', 'a master of a Redis Cluster that dies', () => {
  it.each(['ioredis', 'redis'])('takes no holds of other masters with it: %s', async (driver) => {
    // Otherwise the others refuse writes, too, until the replica is promoted, which is long after the end of this.
    const cluster = await startRedisCluster(() => ({ args: ['--cluster-require-full-coverage', 'no'] }))
    const locks = new Holdfast(redis(`${cluster.url}?driver=${driver}`))
    const names = ['one', 'two', 'three']
    expect(new Set(await Promise.all(names.map((name) => cluster.masterOf(name)))).size).toBe(3)
    const holds = await Promise.all(names.map((name) => locks.mutex(name).acquire({ lease: LEASE_MS })))
    await (await cluster.masterOf('one')).kill()
    const until = now() + 2 * LEASE_MS
    await eventually('two leases', () => now() > until)
    expect(holds.slice(1).map(({ isValid }) => isValid)).toEqual([true, true])
    // Also while the client opens the Cluster anew, which it cannot before the replica is promoted.
    await locks.close()
    await cluster.stop()
  })

  it.each(['ioredis', 'redis'])(
    'keeps no new process from the others while it stands still: %s',
    async (driver) => {
      const cluster = await startRedisCluster(() => ({ args: ['--cluster-require-full-coverage', 'no'] }))
      onTestFinished(() => cluster.stop())
      const frozen = await cluster.masterOf('one')
      frozen.pause()
      const locks = new Holdfast(redis(`${cluster.url}?driver=${driver}`), { storeTimeout: '20s' })
      onTestFinished(() => locks.close({ drain: 0 }))
      expect((await locks.mutex('two').acquire()).isValid).toBe(true)
    },
  )
})
