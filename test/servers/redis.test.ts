import { afterEach, expect, it } from 'vitest'
import { eventually, now } from '../../src/testing/conformance/checks.js'
import { describeOn } from './availability.js'
import { type RedisOptions, type RedisServer, startRedis } from './redis.js'
import { startRedisCluster } from './redis-cluster.js'
import { startRedisSentinel } from './redis-sentinel.js'
import { SlowDisk } from './slow-disk.js'
import { WallClock } from './wall-clock.js'

describeOn('redis', 'a private Redis', () => {
  const running: { stop(): Promise<void> }[] = []
  const redis = async (options: RedisOptions = {}): Promise<RedisServer> => ending(await startRedis(options))
  const ending = <T extends { stop(): Promise<void> }>(server: T): T => {
    running.push(server)
    return server
  }
  afterEach(async () => {
    for (const server of running.splice(0)) await server.stop()
  })

  it('keeps what it knew through kill -9 if it persists, and only then', async () => {
    const lasting = await redis({ persistence: 'always' })
    await lasting.cli('set', 'a', '1')
    await lasting.restart({ keepData: true })
    expect(await lasting.cli('get', 'a')).toBe('1')
    await lasting.restart({ keepData: false })
    expect(await lasting.cli('get', 'a')).toBe('')

    const forgetful = await redis()
    await forgetful.cli('set', 'a', '1')
    await forgetful.restart({ keepData: true })
    expect(await forgetful.cli('get', 'a')).toBe('')
  })

  it('can be paused, and reports its errors', async () => {
    const one = await redis()
    one.pause()
    const answer = one.cli('ping')
    expect(await Promise.race([answer, one.cli('ping').then(() => 'resumed'), paused(200)])).toBe('paused')
    one.resume()
    expect(await answer).toBe('PONG')
    await expect(one.cli('no-such-command')).rejects.toThrow(/unknown command/)
    await expect(redis({ args: ['--no-such-option', '1'] })).rejects.toThrow(/no-such-option/)
  })

  it('fails over with Sentinel', async () => {
    const group = ending(await startRedisSentinel())
    const [first, second] = group.nodes
    await first.cli('set', 'a', '1')
    await eventually('the copy', async () => (await second.cli('get', 'a')) === '1')
    expect(await group.master()).toBe(first)
    expect(await group.killMaster()).toBe(second)
    expect(await second.cli('get', 'a')).toBe('1')
    expect(await group.master()).toBe(second)
    await first.restart({ keepData: true })
    await group.replicating()
    expect(await group.pauseMaster()).toBe(first)
  })

  it('fails over in a Cluster', async () => {
    const cluster = ending(await startRedisCluster())
    const old = await cluster.masterOf('a')
    await old.cli('set', 'a', '1')
    const heir = await cluster.replicaOf('a')
    await eventually('the copy', async () => (await heir.cli('info', 'keyspace')).includes('keys=1,'))
    const next = await cluster.killMaster('a')
    expect(next).toBe(heir)
    expect(await next.cli('get', 'a')).toBe('1')
    await old.restart({ keepData: true })
    await cluster.serving()
    expect(await cluster.replicaOf('a')).toBe(old)
  })

  const clock = new WallClock()
  it.skipIf(clock.obstacle)(
    `can have a clock of its own${clock.obstacle ? ` (skipped: ${clock.obstacle})` : ''}`,
    async () => {
      const one = await redis({ clock })
      const aheadS = async () => Number((await one.cli('time')).split('\n')[0]) - Date.now() / 1000
      expect(Math.abs(await aheadS())).toBeLessThan(5)
      clock.set(-10)
      expect(await aheadS()).toBeLessThan(-5)
      clock.set(3600)
      expect(await aheadS()).toBeGreaterThan(3500)
      await one.stop()
      clock.dispose()
    },
  )

  const disk = new SlowDisk()
  it.skipIf(disk.obstacle)(
    `can have a slow disk${disk.obstacle ? ` (skipped: ${disk.obstacle})` : ''}`,
    async () => {
      const one = await redis({ persistence: 'always', disk })
      disk.set(300)
      const from = now()
      await one.cli('set', 'a', '1')
      expect(now() - from).toBeGreaterThanOrEqual(300)
      expect(disk.delays).toBeGreaterThan(0)
      disk.set(0)
      await one.stop()
      disk.dispose()
    },
  )
})

function paused(ms: number): Promise<string> {
  return new Promise((resolve) => setTimeout(() => resolve('paused'), ms))
}
