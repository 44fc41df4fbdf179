import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { expect, it, onTestFinished } from 'vitest'
import { type Hold, Holdfast } from '../../src/index.js'
import { redis } from '../../src/stores/redis/index.js'
import { eventually, now, pass } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { type RedisServer, startRedis } from '../servers/redis.js'

async function server(...args: string[]): Promise<RedisServer> {
  const started = await startRedis({ args })
  onTestFinished(() => started.stop())
  return started
}

async function scriptCalls(of: RedisServer): Promise<number> {
  const line = (await of.cli('info', 'commandstats'))
    .split('\n')
    .find((each) => each.startsWith('cmdstat_evalsha:'))
  return Number(/calls=(\d+)/.exec(line ?? 'calls=0')?.[1])
}

/** Resolves when the hold has been renewed. */
async function renewed(hold: Hold): Promise<void> {
  // In this order, then in the other: the process may stand still between the two.
  const validUntil = hold.remainingMs + now()
  await eventually('a renewal', () => now() + hold.remainingMs > validUntil)
}

/** Resolves with how long the key of an unused resource stays. */
async function keptMs(of: RedisServer, name: string, locks: Holdfast): Promise<number> {
  await locks.mutex(name).run(() => {})
  return Number(await of.cli('pttl', `holdfast:default:{${name}}`))
}

describeOn('redis', 'the Redis store', () => {
  it('takes its options from a URL, and those that are given before them', async () => {
    const live = await server()
    const url = `${live.url}?retention=10h`
    await using kept = await Holdfast.open(url)
    expect(await keptMs(live, 'kept', kept)).toBeGreaterThan(9 * 3_600_000)
    await using given = new Holdfast(redis(url, { retention: '1h' }))
    expect(await keptMs(live, 'given', given)).toBeLessThan(3 * 3_600_000)

    const safe = `${live.url}?replicas=1&replicaTimeout=20ms`
    await using strict = await Holdfast.open(safe)
    const finding = (await strict.check()).find(({ about }) => about === 'replicas')
    expect(finding).toMatchObject({ level: 'fault' })
    await using lax = new Holdfast(redis(safe, { replicas: 0 }))
    await lax.mutex('lax').run(() => {})
  })

  it('keeps a line for as long as its holds when it is resized', async () => {
    const { url, cli } = await bound(server())
    await using mine = new Holdfast(redis(url, { retention: '1s' }))
    await using theirs = new Holdfast(redis(url, { retention: '1s' }))
    const askedAt = now()
    await mine.semaphore('gpu', 1).acquire({ lease: '1m' })
    await theirs.semaphore('gpu', 1).resize(1)
    const [key] = (await cli('keys', '*gpu*')).split('\n')
    const leftMs = Number(await cli('pttl', String(key)))
    expect(leftMs).toBeGreaterThan(60_000 - (now() - askedAt))
    expect(await theirs.semaphore('gpu', 1).tryAcquire()).toBeNull()
  })

  it('asks nothing while a wait finds its state gone since the last change', async () => {
    const live = await server()
    const options = { retention: '1s' } as const
    await using mine = new Holdfast(redis(live.url, options))
    await using theirs = new Holdfast(redis(live.url, options))
    const wait = mine.latch('go', 1).wait()
    await expect.poll(() => live.cli('pubsub', 'numsub', 'holdfast:default:{latch:go}:state')).toMatch(/1$/)
    await theirs.latch('go', 1).countDown()
    await wait
    await live.cli('flushall')
    const again = mine
      .latch('go', 1)
      .wait({ wait: '30s' })
      .catch(() => {})
    await pass(300)
    const [askedAt, before] = [now(), await scriptCalls(live)]
    await pass(1000)
    const calls = (await scriptCalls(live)) - before
    // It reads the state twice when it begins, which may be as late as here, and every five seconds.
    expect(calls).toBeLessThan(5 + 2 * Math.floor((now() - askedAt) / 5000))
    await theirs.latch('go', 1).countDown()
    await again
  })

  it('leaves no subscription for each latch that was waited for', async () => {
    const live = await server()
    await using locks = new Holdfast(redis(live.url))
    for (let number = 0; number < 300; number++) {
      const latch = locks.latch(`latch ${number}`, 1)
      const wait = latch.wait()
      await latch.countDown()
      await wait
    }
    const channels = (await live.cli('pubsub', 'channels', '*:state'))
      .split('\n')
      .filter((line) => line !== '')
    expect(channels.length).toBeLessThan(150)
  })

  it('can be used anew after a client was closed while it connected', async () => {
    const { url } = await server()
    for (const driver of ['ioredis', 'redis', 'iovalkey'] as const) {
      const store = redis(url, { driver })
      const hasty = new Holdfast(store)
      const claim = hasty
        .mutex('a')
        .acquire()
        .catch(() => {})
      await hasty.close()
      await claim
      await using locks = new Holdfast(store)
      expect(await locks.mutex('b').run(() => driver)).toBe(driver)
    }
  })

  it('puts no password into an error', async () => {
    const live = await server()
    await live.cli('config', 'set', 'requirepass', 'right')
    const { port } = live
    for (const driver of ['ioredis', 'redis', 'iovalkey'] as const) {
      await using locks = new Holdfast(redis(`redis://:hunter2@127.0.0.1:${port}`, { driver }), {
        storeTimeout: 500,
      })
      const error = await locks
        .mutex('a')
        .acquire()
        .catch((each: unknown) => each)
      const { inspect } = await import('node:util')
      expect(inspect(error, { depth: 9 })).not.toContain('hunter2')
    }
    for (const odd of [
      'redis://user:hun/ter2@host',
      'redis://:p@ss@host',
      'redis://:12/ter/pw@host',
      'redis://:100%@h',
    ])
      expect(() => redis(odd)).toThrow(
        expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(/percent|%25/) }),
      )
  })

  it('does not lose its other holds to one line that holds something else', async () => {
    const live = await server()
    await using locks = new Holdfast(redis(live.url))
    const holds = await Promise.all(
      [1, 2, 3].map((name) => locks.mutex(`hold ${name}`).acquire({ lease: 6000 })),
    )
    const [victim, ...others] = holds
    await live.cli('set', 'holdfast:default:{hold 1}', 'something else')
    await expect.poll(() => victim?.isValid).toBe(false)
    await Promise.all(others.map(renewed))
    expect(others.map((hold) => hold.isValid)).toEqual([true, true])
  })

  it('keeps a hold whose renewal was refused for a moment', async () => {
    const live = await server()
    await using locks = new Holdfast(redis(live.url))
    const hold = await locks.mutex('door').acquire({ lease: 9000 })
    await live.cli('acl', 'setuser', 'default', '-hset')
    await eventually('a refusal', async () => (await live.cli('acl', 'log')).includes('hset'))
    await live.cli('acl', 'setuser', 'default', '+hset')
    await renewed(hold)
    expect(hold.isValid).toBe(true)
  })

  it('keeps a hold while its server is a replica for a moment', async () => {
    const live = await server()
    await using locks = new Holdfast(redis(live.url))
    const hold = await locks.mutex('door').acquire({ lease: 9000 })
    await live.cli('replicaof', '127.0.0.1', '1')
    const calls = await scriptCalls(live)
    await eventually('a pulse', async () => (await scriptCalls(live)) > calls)
    await live.cli('replicaof', 'no', 'one')
    await renewed(hold)
    expect(hold.isValid).toBe(true)
  })

  it('puts few listeners on the client that it was given, however many stores are made of it', async () => {
    const { url } = await server()
    const ioredis = new Redis(url)
    const nodeRedis = createClient({ url })
    nodeRedis.on('error', () => {})
    await nodeRedis.connect()
    onTestFinished(() => {
      ioredis.disconnect()
      nodeRedis.destroy()
    })
    for (let time = 0; time < 12; time++) {
      for (const client of [ioredis, nodeRedis]) {
        await using locks = new Holdfast(redis(client))
        await locks.mutex('a').run(() => {})
      }
    }
    expect(ioredis.listenerCount('close')).toBeLessThan(4)
    expect(nodeRedis.listenerCount('end')).toBeLessThan(4)
  })

  it('closes in time although the server is silent', async () => {
    const live = await server()
    const store = redis(live.url)
    const stays = new Holdfast(store)
    const goes = new Holdfast(store)
    for (const locks of [stays, goes]) await locks.mutex('a').run(() => {})
    live.pause()
    onTestFinished(() => live.resume())
    await goes.close()
    live.resume()
    await stays.close()
  })

  it('keeps the lines of one space apart from the states of another, whatever their names', async () => {
    const { url } = await server()
    const names = ['a', 'a:state', 'a:{latch', 'a:state:{latch']
    const clients = names.map((space) => new Holdfast(redis(url), { space }))
    onTestFinished(async () => void (await Promise.all(clients.map((client) => client.close({ drain: 0 })))))
    for (const client of clients) {
      expect(await client.latch('x', 2).countDown()).toBe(1)
      for (const name of ['latch:x', 'x}:state', 'latch:x}:state'])
        expect(await client.mutex(name).tryAcquire({ lease: '1m' })).not.toBeNull()
    }
    for (const client of clients) {
      expect(await client.latch('x', 2).count()).toBe(1)
      const seen: string[] = []
      for await (const line of client.inspect()) seen.push(line.name)
      expect(seen.sort()).toEqual(['latch:x', 'latch:x}:state', 'x}:state'])
    }
  })
})

/** A server whose methods can be taken apart. */
async function bound(starting: Promise<RedisServer>): Promise<{ url: string; cli: RedisServer['cli'] }> {
  const started = await starting
  return { url: started.url, cli: (...args) => started.cli(...args) }
}
