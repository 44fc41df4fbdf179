import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { type Env, systemEnv } from '../../src/base/env.js'
import type { Beat, ClaimReply, Connection, Push } from '../../src/contract/store.js'
import { MemcachedError } from '../../src/drivers/memcached/index.js'
import { Holdfast } from '../../src/index.js'
import { checkVersion } from '../../src/stores/memcached/check.js'
import { explain } from '../../src/stores/memcached/failures.js'
import { memcached, memcachedFromUrl } from '../../src/stores/memcached/index.js'
import { quorum } from '../../src/stores/quorum/index.js'
import { eventually, now, pass, rejectsWith } from '../../src/testing/conformance/checks.js'
import { claimOf } from '../../src/testing/conformance/scene.js'
import { describeOn } from '../servers/availability.js'
import { type MemcachedProcess, startMemcached } from '../servers/memcached.js'
import { WallClock } from '../servers/wall-clock.js'

const HOUR_MS = 3_600_000

describe('memcached by its options', () => {
  it('takes the parts of a URL', () => {
    expect(memcachedFromUrl('//a:1,b:2?prefix=x&retention=5m&timeout=1s').name).toBe('memcached')
    expect(memcachedFromUrl('//user:p%40ss@a:1').name).toBe('memcached')
    for (const [url, message] of [
      ['//a:1?prefix=a%20b', /prefix is/],
      ['//u:a%20b@a:1', /without spaces/],
    ] as const)
      expect(() => memcachedFromUrl(url), url).toThrow(message)
  })

  it('shows no password in its errors', () => {
    expect(() => memcachedFromUrl('//user:secret@a:1/b')).toThrow(/^(?!.*secret)/)
  })

  it('says what to do about what memcached answers', () => {
    for (const [answer, advice] of [
      ['ERROR Too many open connections', /\(-c\)/],
      ['CLIENT_ERROR unauthenticated', /-Y/],
      ['SERVER_ERROR out of memory storing object', /more memory/],
      ['ERROR', /1\.6\.10/],
      ['CLIENT_ERROR invalid flag', /1\.6\.10/],
    ] as const)
      expect(explain(new MemcachedError('REFUSED', `a:1: ${answer}`)).message).toMatch(advice)
  })

  it('cannot be a member of a quorum', () => {
    expect(() => quorum([memcached('a'), memcached('b'), memcached('c')])).toThrow(/cannot be a member/)
  })
})

describeOn('memcached', 'the memcached store', () => {
  let server: MemcachedProcess
  beforeAll(async () => {
    server = await startMemcached()
  })
  afterAll(() => server.stop())

  /** Each with a store value of its own, as in a process of its own. */
  const connectTo = (address: string, space: string, heard: Push[] = []): Connection => {
    const id = systemEnv.id()
    const connection = memcached(address).connect({ id, space, push: (news) => heard.push(news) })
    onTestFinished(() => connection.close())
    return connection
  }

  /** The same by another clock. */
  const connectBy = (env: Env, space: string): Connection => {
    const store = memcached(server.address, { env })
    const connection = store.connect({ id: systemEnv.id(), space, push: () => {} })
    onTestFinished(() => connection.close())
    return connection
  }

  it('keeps hostile names apart', async () => {
    const names = ['a b', 'a\r\nb', 'a\0b', 'ä', 'a\u0308', 'x'.repeat(8000), '__proto__', '%', '"\\']
    const connection = connectTo(server.address, 'a space\n')
    const claims = await Promise.all(names.map((name, index) => connection.claim(claimOf(name, `${index}`))))
    expect(claims.map(({ status }) => status)).toEqual(names.map(() => 'granted'))
    const listed: string[] = []
    for await (const { resource } of connection.inspect({ prefix: '' })) listed.push(resource)
    expect(listed.sort()).toEqual(names.toSorted())
    expect(await connection.spaces?.()).toContain('a space\n')
    for (const key of await server.keys()) expect(Buffer.byteLength(key)).toBeLessThan(250)
    await connection.write({ key: 'k ü\n', expect: null, value: 'ö\r\n\0', retentionMs: null })
    expect((await connection.read('k ü\n', false))?.value).toBe('ö\r\n\0')
  })

  it('does not believe what it remembers of a line where it says no', async () => {
    const [one, other] = [connectTo(server.address, 'stale'), connectTo(server.address, 'stale')]
    await other.claim(claimOf('door', 'theirs'))
    expect(await one.claim(claimOf('door', 'mine', { mode: 'try' }))).toMatchObject({ reason: 'busy' })
    await other.release('door', 'theirs')
    expect(await one.claim(claimOf('door', 'mine', { mode: 'try' }))).toMatchObject({ status: 'granted' })
    await one.release('door', 'mine')
    await other.claim(claimOf('door', 'theirs'))
    expect(await one.claim(claimOf('door', 'mine', { mode: 'try' }))).toMatchObject({ reason: 'busy' })
    expect(await one.release('door', 'mine')).toBe(false)
    expect(await one.pulse([{ resource: 'door', id: 'mine', leaseMs: 1000, presenceMs: 1000 }])).toEqual([
      { status: 'gone' },
    ])
  })

  it('writes a free lock that it knows with one command for the claim and one for the release', async () => {
    const connection = connectTo(server.address, 'short')
    const pair = async (id: string): Promise<void> => {
      await connection.claim(claimOf('door', id))
      await connection.release('door', id)
    }
    await pair('first')
    const [sets, gets] = [await server.stat('cmd_set'), await server.stat('cmd_get')]
    for (let round = 0; round < 20; round++) await pair(`${round}`)
    expect((await server.stat('cmd_set')) - sets).toBe(40)
    // The poll of a hold may come between.
    expect((await server.stat('cmd_get')) - gets).toBeLessThan(20)
  })

  it('polls the lines that it holds, and not those that it has released', async () => {
    const own = await startMemcached()
    onTestFinished(() => own.stop())
    const connection = connectTo(own.address, 'released')
    for (let index = 0; index < 50; index++) {
      await connection.claim(claimOf(`door-${index}`, 'mine', { leaseMs: HOUR_MS }))
      if (index > 0) await connection.release(`door-${index}`, 'mine')
    }
    // Those 50 lines were read once.
    const gets = async (): Promise<number> => (await own.stat('cmd_get')) - 50
    await eventually('two polls of the one that is held', async () => (await gets()) >= 2)
    expect(await gets()).toBeLessThan(49)
  })

  it('makes one write of the calls of one line that come together', async () => {
    const connection = connectTo(server.address, 'together')
    const capacity = 100
    const sets = await server.stat('cmd_set')
    const claims = Array.from({ length: 64 }, (_, index) =>
      connection.claim(claimOf('door', `${index}`, { permits: 1, capacity })),
    )
    for (const { status } of await Promise.all(claims)) expect(status).toBe('granted')
    expect((await server.stat('cmd_set')) - sets).toBeLessThanOrEqual(2)
  })

  it('loses no claim where many processes change one line at once', async () => {
    const connections = Array.from({ length: 8 }, () => connectTo(server.address, 'rush'))
    const claims = connections.flatMap((connection, owner) =>
      Array.from({ length: 10 }, async (_, index) => {
        const id = `${owner}-${index}`
        const reply = await connection.claim(claimOf('door', id, { permits: 1, capacity: 1000 }))
        return reply.status === 'granted' ? reply.fence : 0
      }),
    )
    const fences = await Promise.all(claims)
    expect(new Set(fences).size).toBe(80)
    for await (const { claims } of connectTo(server.address, 'rush').inspect({ prefix: '' }))
      expect(claims.length).toBe(80)
  })

  it('refuses the claim for which the line has no room, and keeps the line', async () => {
    const connection = connectTo(server.address, 'full')
    await connection.claim(claimOf('door', 'holder'))
    const info = 'x'.repeat(600_000)
    await connection.claim(claimOf('door', 'second', { info }))
    const error = await rejectsWith(
      'STORE_UNAVAILABLE',
      Promise.resolve(connection.claim(claimOf('door', 'third', { info: `y${info}` }))),
    )
    // The caller is told at once, and does not ask again and again.
    expect(error.retryable).toBe(false)
    expect(error.message).toMatch(/is full: it has 2 claims.*-I/)
    expect(await connection.claim(claimOf('door', 'holder'))).toMatchObject({ status: 'granted' })
    expect(await connection.release('door', 'second')).toBe(true)
    expect(await connection.claim(claimOf('door', 'third', { info: `y${info}` }))).toMatchObject({
      status: 'waiting',
    })
  })

  it('serves the calls that come together with claims for which there is no room', async () => {
    const small = await startMemcached({ args: ['-I', '16k', '-o', 'slab_chunk_max=8192'] })
    onTestFinished(() => small.stop())
    const connection = connectTo(small.address, 'full')
    const claim = (id: string): Promise<ClaimReply> =>
      Promise.resolve(connection.claim(claimOf('door', id, { leaseMs: 60_000, presenceMs: 60_000 })))
    const beat = (id: string): Beat => ({ resource: 'door', id, leaseMs: 60_000, presenceMs: 60_000 })
    await claim('holder')
    const ids = Array.from({ length: 400 }, (_, index) => `waiter-${index}`)
    const outcomes = await Promise.allSettled(ids.map((id) => claim(id)))
    const places = ids.filter((_id, index) => outcomes[index]?.status === 'fulfilled')
    expect(places.length).toBeGreaterThan(50)
    expect(places.length).toBeLessThan(400)
    expect(places).toEqual(ids.slice(0, places.length))
    const [first = '', second = ''] = places
    // One batch: it begins with what was submitted while the first call was under way.
    const answers = await Promise.allSettled([
      connection.pulse([beat('holder')]),
      ...ids.slice(300).map((id) => claim(id)),
      connection.pulse(places.map(beat)),
      connection.release('door', 'holder'),
      connection.release('door', first),
    ])
    const [held, ...rest] = answers
    expect(held).toMatchObject({ value: [{ status: 'held' }] })
    expect(rest[99]?.status).toBe('rejected')
    expect(rest.slice(-2)).toMatchObject([{ value: true }, { value: true }])
    expect(rest.at(-3)).toMatchObject({ value: places.map(() => ({ status: 'waiting' })) })
    expect(await connection.pulse([beat(second)])).toMatchObject([{ status: 'held' }])
    expect(await claim('one more')).toMatchObject({ status: 'waiting' })
  })

  it('counts what is written of a text that is not ASCII', async () => {
    const small = await startMemcached({ args: ['-I', '16k', '-o', 'slab_chunk_max=8192'] })
    onTestFinished(() => small.stop())
    const connection = connectTo(small.address, 'full')
    await connection.claim(claimOf('door', 'holder'))
    const claims = Array.from({ length: 20 }, (_, index) =>
      connection.claim(claimOf('door', `${index}`, { info: `${'ü'.repeat(500)}${index}` })),
    )
    const released = connection.release('door', 'holder')
    const outcomes = await Promise.allSettled(claims)
    const isIn = outcomes.map(({ status }) => status === 'fulfilled')
    expect(isIn).toEqual(isIn.map((_, index) => index < 4))
    for (const outcome of outcomes.slice(4)) expect(outcome).toMatchObject({ reason: { retryable: false } })
    expect(await released).toBe(true)
  })

  it('does not say that a line is full which another process has emptied', async () => {
    const [one, other] = [connectTo(server.address, 'emptied'), connectTo(server.address, 'emptied')]
    const info = 'x'.repeat(600_000)
    await one.claim(claimOf('door', 'first', { info }))
    await one.claim(claimOf('door', 'second'))
    await other.release('door', 'first')
    expect(await one.claim(claimOf('door', 'third', { info: `y${info}` }))).toMatchObject({
      status: 'waiting',
    })
  })

  it('tells the caller of a full line, by the reason and at once', async () => {
    const small = await startMemcached({ args: ['-I', '4k', '-o', 'slab_chunk_max=2048'] })
    onTestFinished(() => small.stop())
    const locks = new Holdfast(memcached(small.address), { order: 'strict' })
    onTestFinished(() => locks.close({ drain: 0 }))
    await locks.mutex('door').acquire()
    const waits = Array.from({ length: 30 }, () => locks.mutex('door').acquire({ wait: '1h' }))
    const error = await rejectsWith('STORE_UNAVAILABLE', Promise.race(waits))
    for (const wait of waits) wait.catch(() => {})
    expect(error.message).toMatch(/The line of 'door' is full/)
  })

  it('does not touch an item that it did not write', async () => {
    const connection = memcached(server.address, { prefix: 'foreign' }).connect({
      id: 'c',
      space: 's',
      push: () => {},
    })
    onTestFinished(() => connection.close())
    await connection.claim(claimOf('door', 'first'))
    const [key = ''] = (await server.keys()).filter((each) => each.startsWith('foreign:l:'))
    await server.client.meta(`ms ${key} 7\r\n{"a":1}\r\n`)
    const error = await rejectsWith(
      'STORE_UNAVAILABLE',
      Promise.resolve(connection.claim(claimOf('door', 'b'))),
    )
    expect(error.message).toMatch(/another prefix/)
    expect((await server.client.meta(`mg ${key} v\r\n`)).value).toBe('{"a":1}')
  })

  it('keeps the other holds and the listing where another program has overwritten a line', async () => {
    const lineKeys = async (): Promise<string[]> =>
      (await server.keys()).filter((each) => each.startsWith('overwritten:l:'))
    for (const text of ['{"a":1}', 'x', '[1]', '[1,"s","door",0,0,null,[],[],[["a"]]]', '[1,2,3]']) {
      const store = memcached(server.address, { prefix: 'overwritten' })
      const connection = store.connect({ id: 'c', space: 's', push: () => {} })
      await connection.claim(claimOf('door', 'first'))
      for (const key of await lineKeys()) await server.client.meta(`ms ${key} ${text.length}\r\n${text}\r\n`)
      await connection.claim(claimOf('window', 'second'))
      const beats = [
        { resource: 'door', id: 'first', leaseMs: HOUR_MS, presenceMs: HOUR_MS },
        { resource: 'window', id: 'second', leaseMs: HOUR_MS, presenceMs: HOUR_MS },
      ]
      const answers = await connection.pulse(beats)
      expect(answers, text).toMatchObject([{ status: 'gone' }, { status: 'held' }])
      const listed: string[] = []
      for await (const { resource } of connection.inspect({ prefix: '' })) listed.push(resource)
      expect(listed, text).toEqual(['window'])
      expect(await connection.spaces?.()).toEqual(['s'])
      const error = await rejectsWith(
        'STORE_UNAVAILABLE',
        Promise.resolve(connection.claim(claimOf('door', 'b'))),
      )
      expect(error.message, text).toMatch(/another prefix/)
      await connection.close()
      for (const key of await lineKeys()) await server.evict(key)
    }
  })

  it('lists the other states where another program has overwritten one', async () => {
    const store = memcached(server.address, { prefix: 'states' })
    const connection = store.connect({ id: 'c', space: 's', push: () => {} })
    onTestFinished(() => connection.close())
    await connection.write({ key: 'a', expect: null, value: '1', retentionMs: null })
    const [key = ''] = (await server.keys()).filter((each) => each.startsWith('states:s:'))
    await connection.write({ key: 'b', expect: null, value: '2', retentionMs: null })
    await server.client.meta(`ms ${key} 3\r\n[1]\r\n`)
    const listed: string[] = []
    for await (const state of connection.states('')) listed.push(state.key)
    expect(listed).toEqual(['b'])
    const error = await rejectsWith('STORE_UNAVAILABLE', Promise.resolve(connection.read('a', false)))
    expect(error.message).toMatch(/another prefix/)
  })

  it('keeps the fence of a released line, and forgets the line after its retention', async () => {
    const locks = new Holdfast(memcached(server.address, { prefix: 'kept', retention: '1s' }))
    onTestFinished(() => locks.close())
    const hold = await locks.mutex('door').acquire()
    await hold.release()
    const keys = async (): Promise<string[]> =>
      (await server.keys()).filter((key) => key.startsWith('kept:l:'))
    expect(await keys()).toHaveLength(1)
    await eventually('the line being forgotten', async () => (await keys()).length === 0)
    const later = await locks.mutex('door').acquire()
    expect(later.fence).toBeGreaterThan(hold.fence)
    await later.release()
  })

  it('tells waiters of other processes soon, and asks little while nothing moves', async () => {
    const holder = connectTo(server.address, 'crowd')
    await holder.claim(claimOf('door', 'holder'))
    const heard: Push[][] = []
    for (let index = 0; index < 30; index++) {
      const news: Push[] = []
      heard.push(news)
      await connectTo(server.address, 'crowd', news).claim(claimOf('door', `waiter-${index}`))
    }
    // Polls get rarer while nothing moves.
    await pass(2000)
    const [start, before] = [now(), await server.stat('cmd_get')]
    await pass(2000)
    const perSecond = ((await server.stat('cmd_get')) - before) / ((now() - start) / 1000)
    expect(perSecond).toBeLessThan(60)
    await holder.release('door', 'holder')
    await eventually('the first one knowing', () => heard[0]?.some(({ type }) => type === 'granted') === true)
    expect(heard.slice(1).flat()).toEqual([])
  })

  it('tells a holder of another process that its hold was revoked, without being asked', async () => {
    const news: Push[] = []
    const holder = connectTo(server.address, 'revoked', news)
    await holder.claim(claimOf('door', 'mine', { leaseMs: HOUR_MS }))
    await connectTo(server.address, 'revoked').evict('door', null)
    await eventually('the push', () => news.length > 0)
    expect(news).toEqual([{ type: 'lost', resource: 'door', id: 'mine' }])
  })

  it('tells the next in line that the hold of another process has lapsed', async () => {
    const news: Push[] = []
    await connectTo(server.address, 'lapsed').claim(claimOf('door', 'theirs', { leaseMs: 3000 }))
    const next = connectTo(server.address, 'lapsed', news)
    await next.claim(claimOf('door', 'mine', { presenceMs: HOUR_MS, leaseMs: HOUR_MS }))
    await eventually('the push', () => news.length > 0)
    expect(news).toEqual([{ type: 'gap' }])
    expect(await next.claim(claimOf('door', 'mine'))).toMatchObject({ status: 'granted' })
  })

  it('ends a hold with its lease, neither before nor after', async () => {
    const start = systemEnv.wallMs()
    let wall = start
    const env = { ...systemEnv, wallMs: () => wall }
    const [one, other] = [connectBy(env, 'ends'), connectBy(env, 'ends')]
    await one.claim(claimOf('door', 'mine', { leaseMs: 10_000 }))
    wall = start + 9999
    const attempt = claimOf('door', 'theirs', { mode: 'try', leaseMs: 10_000 })
    expect(await other.claim(attempt)).toMatchObject({ reason: 'busy' })
    wall = start + 10_000
    expect(await other.claim(attempt)).toMatchObject({ status: 'granted', leaseMs: 10_000 })
    expect(await one.release('door', 'mine')).toBe(false)
    expect(await one.claim(claimOf('door', 'again', { mode: 'try' }))).toMatchObject({ reason: 'busy' })
  })

  it('gives a whole lease after a client whose clock is ahead, and keeps the order of fences', async () => {
    const ahead = connectBy({ ...systemEnv, wallMs: () => systemEnv.wallMs() + HOUR_MS }, 'ahead')
    const right = connectBy(systemEnv, 'ahead')
    const first = await ahead.claim(claimOf('door', 'first'))
    await ahead.release('door', 'first')
    const second = await right.claim(claimOf('door', 'second', { leaseMs: HOUR_MS / 2 }))
    const attempt = claimOf('door', 'third', { mode: 'try' })
    expect(await ahead.claim(attempt)).toMatchObject({ reason: 'busy' })
    expect((second as { fence: number }).fence).toBeGreaterThan((first as { fence: number }).fence)
  })

  it('keeps the item of a hold whose lease is longer than the retention', async () => {
    const store = memcached(server.address, { prefix: 'long', retention: '1s' })
    const connection = store.connect({ id: 'c', space: 's', push: () => {} })
    onTestFinished(() => connection.close())
    await connection.claim(claimOf('door', 'mine', { leaseMs: HOUR_MS }))
    // memcached counts whole seconds, so a second may take two.
    await pass(3000)
    const attempt = claimOf('door', 'theirs', { mode: 'try' })
    expect(await connection.claim(attempt)).toMatchObject({ reason: 'busy' })
  })

  it('tells a watcher of a change by another process', async () => {
    const news: Push[] = []
    const [watcher, writer] = [connectTo(server.address, 'watch', news), connectTo(server.address, 'watch')]
    expect(await watcher.read('latch', true)).toBeNull()
    await writer.write({ key: 'latch', expect: null, value: '1', retentionMs: 60_000 })
    await eventually('the push', () => news.length > 0)
    expect(news).toEqual([{ type: 'state', key: 'latch' }])
  })
})

describeOn('memcached', 'the doctor of memcached', () => {
  const findingsOf = async (
    args: readonly string[],
    fill = 0,
    clock?: WallClock,
  ): Promise<Map<string, string>> => {
    const server = await startMemcached({ args, ...(clock && { clock }) })
    onTestFinished(() => server.stop())
    for (let index = 0; index < fill; index++)
      await server.client.meta(`ms fill${index} 500000\r\n${'x'.repeat(500_000)}\r\n`).catch(() => {})
    const locks = new Holdfast(memcached(server.address))
    onTestFinished(() => locks.close())
    return new Map((await locks.check()).map(({ about, level, text }) => [about, `${level}: ${text}`]))
  }

  it('finds nothing wrong with a fresh server, and says what it is not for', async () => {
    const findings = await findingsOf([])
    expect(findings.get('version')).toMatch(/^fine: memcached 1\.6/)
    expect(findings.get('memory')).toMatch(/^fine/)
    expect(findings.get('eviction')).toMatch(/^risk: None so far/)
    expect(findings.get('listing')).toMatch(/^fine/)
    expect(findings.get('clock')).toMatch(/^fine/)
    expect(findings.get('restart')).toMatch(/^risk/)
  })

  it('wants a version whose meta commands are those of today', () => {
    for (const version of ['1.6.10', '1.6.18', '1.7.0', '2.0.1', '1.6.39-rc1'])
      expect(checkVersion(version).level, version).toBe('fine')
    for (const version of ['1.6.9', '1.5.22', '1.4.10', ''])
      expect(checkVersion(version), version).toMatchObject({
        level: 'fault',
        text: expect.stringContaining('1.6.10 or later'),
      })
  })

  it('knows -C, without which nothing can be changed', async () => {
    expect((await findingsOf([])).get('cas')).toMatch(/^fine/)
    expect((await findingsOf(['-C'])).get('cas')).toMatch(/^fault: .*-C/)
  })

  it('knows -M and -X', async () => {
    const findings = await findingsOf(['-M', '-X'])
    expect(findings.get('eviction')).toMatch(/^fine/)
    expect(findings.get('listing')).toMatch(/^risk/)
  })

  it('says that leases depend on a clock that is wrong', async (context) => {
    const clock = new WallClock()
    onTestFinished(() => clock.dispose())
    context.skip(clock.obstacle !== null, clock.obstacle ?? '')
    clock.set(-60)
    expect((await findingsOf([], 0, clock)).get('clock')).toMatch(
      /^risk: The server's clock is \d+ s apart from this machine's\. Leases depend on it: .*restart memcached/,
    )
  })

  it('counts what was evicted, and what was refused', async () => {
    expect((await findingsOf(['-m', '8'], 40)).get('eviction')).toMatch(
      /^fault: The server has evicted \d+ items/,
    )
    expect((await findingsOf(['-m', '8', '-M'], 40)).get('eviction')).toMatch(
      /^fault: The server has refused/,
    )
  })
})
