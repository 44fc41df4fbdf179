import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { packetLossAvailability } from './packet-loss.js'
import { describeOnQuorum, type QuorumServers, startQuorum } from './quorum.js'
import { redisCli } from './redis.js'

const KINDS = ['redis', 'redis', 'sqlite'] as const
const noLoss = packetLossAvailability()

describeOnQuorum(KINDS, 'the servers of a quorum', () => {
  let servers: QuorumServers
  beforeAll(async () => {
    servers = await startQuorum(KINDS, { persistence: 'always' })
  })
  afterAll(() => servers?.stop())

  const port = (member: number): number => servers.server(member).port

  it('are named by one URL', () => {
    expect(servers.url).toBe(`quorum:${servers.urls.join(',')}`)
    expect(servers.urls.map((url) => url.split(':')[0])).toEqual(['redis', 'redis', 'sqlite'])
    expect(() => servers.server(2)).toThrow('member 2 (sqlite) has no server')
    expect(servers.minority).toBe(1)
  })

  it('are killed and restarted one by one, with their data or without', async () => {
    for (const member of [0, 1]) await redisCli(port(member), ['set', 'a', String(member)])
    await servers.kill(0)
    expect([0, 1].map((member) => servers.isRunning(member))).toEqual([false, true])
    await servers.restart(0, { keepData: true })
    expect(await redisCli(port(0), ['get', 'a'])).toBe('0')
    await servers.restart(0, { keepData: false })
    expect(await redisCli(port(0), ['get', 'a'])).toBe('')
    expect(await redisCli(port(1), ['get', 'a'])).toBe('1')
  })

  it('are reached on a way that can be cut, while another one is open', async () => {
    const [one, other] = [await servers.ways(), await servers.ways()]
    expect(one.proxies.map((proxy) => proxy === null)).toEqual([false, false, true])
    one.proxies[0]?.stop()
    const [cut, open] = [one, other].map(
      ({ urls }) => new Redis(urls[0] ?? '', { lazyConnect: true, retryStrategy: () => null }),
    )
    cut?.on('error', () => {})
    await expect(cut?.connect()).rejects.toThrow()
    expect(await open?.ping()).toBe('PONG')
    open?.disconnect()
    await one.stop()
    await other.stop()
  })

  it.skipIf(noLoss)(`are cut off from everybody${noLoss ? ` (skipped: ${noLoss})` : ''}`, async () => {
    const cut = await servers.cutOff(0)
    const client = new Redis(servers.urls[0] ?? '', {
      lazyConnect: true,
      connectTimeout: 300,
      retryStrategy: () => null,
    })
    client.on('error', () => {})
    await expect(client.connect()).rejects.toThrow()
    expect(await redisCli(port(1), ['ping'])).toBe('PONG')
    cut.heal()
    expect(await redisCli(port(0), ['ping'])).toBe('PONG')
  })
})
