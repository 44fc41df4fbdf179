import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import type { ClaimRequest, Connection, Push } from '../../src/contract/store.js'
import { redis } from '../../src/stores/redis/index.js'
import { eventually } from '../../src/testing/conformance/checks.js'
import { claimOf } from '../../src/testing/conformance/scene.js'
import { describeOn } from '../servers/availability.js'
import { type RedisServer, startRedis } from '../servers/redis.js'

describeOn('redis', 'a refused try on the Redis store', () => {
  let server: RedisServer
  let holder: Connection
  let other: Connection
  let news: Push[]
  beforeAll(async () => {
    server = await startRedis()
  })
  beforeEach(async () => {
    news = []
    holder = connect('holder', (push) => news.push(push))
    other = connect('other', () => {})
    for (const client of [holder, other]) await client.read('subscribes', true)
  })
  afterEach(async () => {
    await Promise.all([holder.close(), other.close()])
    await server.cli('flushall')
  })
  afterAll(() => server.stop())

  const connect = (id: string, push: (news: Push) => void) =>
    redis(server.url).connect({ id, space: 'default', push })
  const attempt = (id: string, request: Partial<ClaimRequest> = {}) =>
    other.claim(claimOf('door', id, { mode: 'try', ...request }))
  const wanted = (): string[] => news.flatMap((each) => (each.type === 'wanted' ? [each.id] : []))
  const published = async () =>
    Number(/cmdstat_publish:calls=(\d+)/.exec(await server.cli('info', 'commandstats'))?.[1] ?? 0)

  it('tells the holder of a block of fences', async () => {
    await holder.claim(claimOf('door', 'h:1', { block: 8 }))
    expect(await attempt('o:1')).toEqual({ status: 'refused', reason: 'busy' })
    await eventually('the holder is told', () => wanted().length > 0)
    expect(wanted()).toEqual(['h:1'])
  })

  it('tells every such holder of a line with several', async () => {
    for (const [id, block] of [
      ['h:1', 8],
      ['h:2', 1],
      ['h:3', 8],
    ] as const)
      await holder.claim(claimOf('door', id, { permits: 1, block }))
    expect(await attempt('o:1')).toEqual({ status: 'refused', reason: 'busy' })
    await eventually('both are told', () => wanted().length > 1)
    expect(wanted()).toEqual(['h:1', 'h:3'])
  })

  it('tells the holder when several calls travel together', async () => {
    await holder.claim(claimOf('door', 'h:1', { block: 8 }))
    const replies = await Promise.all([attempt('o:1'), other.release('door', 'o:2'), attempt('o:3')])
    expect(replies.map((reply) => reply !== false && reply !== true && reply.status)).toEqual([
      'refused',
      false,
      'refused',
    ])
    await eventually('the holder is told of both', () => wanted().length > 1)
  })

  it('tells the holder of a line that was resized', async () => {
    await holder.resize('door', 2, 1)
    await holder.claim(claimOf('door', 'h:1', { permits: 1, capacity: 2, block: 8 }))
    expect(await attempt('o:1', { permits: 1, capacity: 2 })).toEqual({ status: 'refused', reason: 'busy' })
    await eventually('the holder is told', () => wanted().length > 0)
  })

  it('changes nothing', async () => {
    await holder.claim(claimOf('door', 'h:1', { block: 8 }))
    const before = await server.cli('hgetall', 'holdfast:default:{door}')
    await attempt('o:1')
    expect(await server.cli('hgetall', 'holdfast:default:{door}')).toBe(before)
  })

  it('tells nobody where the holder has one fence', async () => {
    await holder.claim(claimOf('door', 'h:1'))
    await server.cli('config', 'resetstat')
    await attempt('o:1')
    expect(await published()).toBe(0)
  })

  it('tells nobody where others wait, who were told of before', async () => {
    await holder.claim(claimOf('door', 'h:1', { block: 8 }))
    await other.claim(claimOf('door', 'o:1'))
    await eventually('the holder is told', () => wanted().length > 0)
    await server.cli('config', 'resetstat')
    await attempt('o:2')
    expect(await published()).toBe(0)
  })

  it('is none on a free lock, which tells nobody', async () => {
    await server.cli('config', 'resetstat')
    for (let n = 0; n < 3; n++) {
      expect(await attempt(`o:${n}`, { block: 8 })).toMatchObject({ status: 'granted' })
      await other.release('door', `o:${n}`)
    }
    expect(await published()).toBe(0)
  })

  it('is promised while messages are heard', async () => {
    const store = redis(server.url)
    expect(store.capabilities.tellsWanted).toBe(false)
    const client = store.connect({ id: 'third', space: 'default', push: () => {} })
    await client.claim(claimOf('door', 't:1'))
    await eventually('it is heard', () => store.capabilities.tellsWanted === true)
    await server.kill()
    await eventually('it is cut', () => store.capabilities.tellsWanted === false)
    await server.restart({ keepData: false })
    await eventually('it is heard again', () => store.capabilities.tellsWanted === true)
    await client.close()
    expect(store.capabilities.tellsWanted).toBe(false)
  })
})
