import { mkdtempSync, rmSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { Holdfast } from '../../src/index.js'
import { dashboard } from '../../src/server/index.js'
import { memory } from '../../src/stores/memory/index.js'
import { quorum } from '../../src/stores/quorum/index.js'
import { describeOn } from '../servers/availability.js'
import { startMariadb } from '../servers/mariadb.js'
import { borrowPostgres } from '../servers/postgres.js'
import { borrowRedis } from '../servers/redis.js'
import { startZooKeeper } from '../servers/zookeeper.js'
import { listen, stageOf, stoppedClock, TOKEN } from './dashboards.js'
import { LockClient, lockApiCases } from './lock-api-cases.js'

/** Each test has a space of its own. */
const spaces = new Map<string, number>()
function space(): string {
  const name = expect.getState().currentTestName ?? ''
  if (!spaces.has(name)) spaces.set(name, spaces.size)
  return `test-${process.pid}-${spaces.get(name)}`
}

describe('the lock API on memory', () => {
  const stores = new Map<string, ReturnType<typeof memory>>()
  lockApiCases(async () => {
    const store = stores.get(space()) ?? memory()
    stores.set(space(), store)
    return new Holdfast(store)
  })
})

describe('the lock API on SQLite', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-test-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }))
  lockApiCases(() => Holdfast.open(`sqlite:${join(folder, 'locks.db')}`, { space: space() }))
})

interface Running {
  readonly url: string
  stop(): Promise<void>
}

function onServer(start: () => Promise<Running>): void {
  let server: Running
  beforeAll(async () => {
    server = await start()
  })
  afterAll(() => server?.stop())
  lockApiCases(() => Holdfast.open(server.url, { space: space() }))
}

describeOn('redis', 'the lock API on Redis', () => onServer(borrowRedis), { own: false })
describeOn('postgres', 'the lock API on PostgreSQL', () => onServer(borrowPostgres), { own: false })
describeOn('mariadb', 'the lock API on MariaDB', () => onServer(startMariadb))

describe('the lock API where a hold belongs to its connection', () => {
  async function refused(locks: Holdfast): Promise<void> {
    const view = dashboard(locks, { token: TOKEN, allowLocks: true })
    onTestFinished(async () => {
      await view.close()
      await locks.close({ drain: 0 })
    })
    const client = new LockClient(view)
    for (const { status, body } of [await client.acquire('a'), await client.tryAcquire('a')]) {
      expect(status).toBe(501)
      expect(body.code).toBe('UNSUPPORTED')
    }
    expect((await client.renew('a', 'some token')).status).toBe(501)
    expect(await client.release('a', 'some token')).toBe(501)
  }

  it('is refused on a quorum', () => refused(new Holdfast(quorum([memory(), memory(), memory()]))))

  describeOn('zookeeper', 'such as ZooKeeper', () => {
    it('is refused', async () => {
      const server = await startZooKeeper()
      onTestFinished(() => server.stop())
      await refused(await Holdfast.open(`zookeeper://${server.address}`))
    })
  })
})

describe('a request', () => {
  it.each([
    [{ wait: '2m' }, /at most 60 s/],
    [{ wait: 'soon' }, /wait is 'soon'/],
    [{ wait: null }, /wait/],
    [{ lease: '10ms' }, /at least 1000 ms/],
    [{ lease: '100000000d' }, /lease must be at most 36500d/],
    [{ lease: 1e300 }, /lease must be at most 36500d/],
    [{ lease: {} }, /lease/],
    [{ lease: { toString: 1 } }, /lease is an object/],
    [{ wait: { toString: 1 } }, /wait is an object/],
    [{ mode: 'delete' }, /'read' or 'write'/],
    [{ permits: 2 }, /need a capacity/],
    [{ capacity: 2, permits: 3 }, /from 1 to 2/],
    [{ capacity: 0 }, /capacity/],
    [{ capacity: 2, mode: 'read' }, /mode is for locks/],
    [{ label: 7 }, /label must be text/],
    [{ owner: '' }, /owner/],
    [{ leese: '30s' }, /no field 'leese'/],
  ])('that says %j is refused', async (body, why) => {
    const client = new LockClient(stageOf({ allowLocks: true }).view)
    const { status, body: problem } = await client.acquire('a', body)
    expect(status).toBe(400)
    expect((problem as unknown as { detail: string }).detail).toMatch(why)
  })

  it('is refused by a server that only shows, and then takes no lock', async () => {
    const { view, locks } = stageOf()
    const client = new LockClient(view)
    expect((await client.acquire('a')).body.code).toBe('READ_ONLY')
    expect((await client.tryAcquire('a')).status).toBe(403)
    expect((await client.renew('a', 'token')).status).toBe(403)
    expect(await client.release('a', 'token')).toBe(403)
    for await (const resource of locks.inspect()) expect.fail(resource.name)
  })

  it('is aborted with its connection, and leaves its place in line', async () => {
    const { view, locks } = stageOf({ allowLocks: true })
    const client = new LockClient(view)
    const hold = await locks.mutex('a').acquire()
    const leaving = new AbortController()
    const waiting = view.fetch(
      new Request('http://localhost/v1/locks/a', {
        method: 'POST',
        body: '{"wait":"50s"}',
        headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
        signal: leaving.signal,
      }),
    )
    await expect.poll(async () => (await client.line('a')).body.waitersTotal).toBe(1)
    leaving.abort()
    expect((await waiting).status).toBe(409)
    await expect.poll(async () => (await client.line('a')).body.waitersTotal).toBe(0)
    await hold.release()
  })

  it('leaves its place in line when something else has answered it', async () => {
    const { view, locks } = stageOf({ allowLocks: true })
    const client = new LockClient(view)
    const hold = await locks.mutex('a').acquire()
    let response: ServerResponse | undefined
    let bridged: Promise<unknown> | undefined
    const { url } = await listen((request, outgoing) => {
      response = outgoing
      bridged = view.node(request, outgoing).catch((error: unknown) => error)
    })
    const answer = fetch(`${url}/v1/locks/a`, {
      method: 'POST',
      body: '{"wait":"50s"}',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    })
    await expect.poll(async () => (await client.line('a')).body.waitersTotal).toBe(1)
    // As the time limit of a framework does.
    response?.writeHead(503).end()
    expect((await answer).status).toBe(503)
    expect(await bridged).toBeUndefined()
    await expect.poll(async () => (await client.line('a')).body.waitersTotal).toBe(0)
    await hold.release()
  })

  it('is one of so many that may wait', async () => {
    const { view, locks } = stageOf({ allowLocks: true, maxWaits: 1 })
    const client = new LockClient(view)
    const hold = await locks.mutex('a').acquire()
    const waiting = client.acquire('a', { wait: '50s' })
    await expect.poll(async () => (await client.line('a')).body.waitersTotal).toBe(1)
    expect(await client.acquire('a')).toMatchObject({ status: 503, body: { code: 'TOO_MANY_WAITS' } })
    await hold.release()
    expect((await waiting).status).toBe(201)
  })
})

it('a renewal, like a grant, takes the drift of the clocks off the lease', async () => {
  const { view } = stageOf({ allowLocks: true }, memory(), { env: stoppedClock().env })
  const client = new LockClient(view)
  const { body: hold } = await client.acquire('a', { lease: '100s' })
  expect(hold.leaseMs).toBeLessThanOrEqual(98_999)
  const { body: renewed } = await client.renew('a', hold.token, { lease: '100s' })
  expect(renewed.leaseMs).toBeLessThanOrEqual(98_999)
  expect(renewed.leaseMs).toBeGreaterThan(98_000)
})
