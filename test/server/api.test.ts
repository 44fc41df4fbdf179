import { hostname } from 'node:os'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Holdfast } from '../../src/index.js'
import type { ResourceChanges, ResourceDetail, ResourceList } from '../../src/server/shapes.js'
import { Spaces } from '../../src/server/spaces.js'
import { memory } from '../../src/stores/memory/index.js'
import { InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'
import { eventsOf, listen, stageOf } from './dashboards.js'

describe('the list', () => {
  it('shows holders and waiters, the most contended first', async () => {
    const { locks, get } = stageOf()
    await locks.mutex('a').acquire({ label: 'first' })
    const hot = await locks.mutex('hot', { order: 'strict' }).acquire({ label: 'holder' })
    const waiting = [1, 2].map(() => locks.mutex('hot', { order: 'strict' }).acquire())
    for (const each of waiting) each.catch(() => {})
    await locks.semaphore('gpu', 4).acquire({ permits: 3 })
    await locks.readWrite('config').read.acquire()
    const list = (await (await get('api/resources')).json()) as ResourceList
    expect(list).toMatchObject({ total: 4, found: 4, held: 4, waiting: 2 })
    expect(list.longestWaitMs).toBeGreaterThanOrEqual(0)
    expect(list.resources.map(({ name }) => name)).toEqual(['hot', 'a', 'config', 'gpu'])
    const [first, , config, gpu] = list.resources
    expect(first).toMatchObject({
      kind: 'lock',
      capacity: null,
      used: 1,
      holders: 1,
      waiters: 2,
      readers: false,
      holder: { label: 'holder', host: hostname(), pid: process.pid, fence: hot.fence, isWriter: true },
    })
    expect(config).toMatchObject({ readers: true, oldestWaitMs: null })
    expect(gpu).toMatchObject({ kind: 'semaphore', capacity: 4, used: 3 })
  })

  it.each([
    ['prefix=order:', ['order:1', 'order:2']],
    ['search=RDER:2', ['order:2']],
    ['state=waited', ['order:1']],
    ['label=night', ['order:2']],
    ['host=nowhere', []],
    ['sort=name&offset=1&limit=1', ['order:2']],
    ['state=free', []],
  ])('filters by %s', async (query, names) => {
    const { locks, get } = stageOf()
    const strict = locks.mutex('order:1', { order: 'strict' })
    await strict.acquire()
    strict.acquire().catch(() => {})
    await locks.mutex('order:2').acquire({ label: 'nightly' })
    await locks.mutex('stock').acquire()
    const list = (await (await get(`api/resources?${query}`)).json()) as ResourceList
    expect(list.resources.map(({ name }) => name)).toEqual(names)
  })

  it('refuses a query that makes no sense', async () => {
    const { get } = stageOf()
    for (const query of ['sort=size', 'limit=-1', 'offset=1e3', 'state=x']) {
      const response = await get(`api/resources?${query}`)
      expect(response.status).toBe(400)
      expect(response.headers.get('content-type')).toBe('application/problem+json')
      expect(await response.json()).toMatchObject({ code: 'INVALID_ARGUMENT', status: 400 })
    }
  })
})

describe('one resource', () => {
  it.each(['plain', 'a/b', 'ü ?#%', '..', '.'])('is found by its name: %s', async (name) => {
    const { locks, get } = stageOf()
    const hold = await locks.mutex(name).acquire()
    const isDots = name === '.' || name === '..'
    const path = isDots ? `api/resource?name=${name}` : `api/resources/${encodeURIComponent(name)}`
    const detail = (await (await get(path)).json()) as ResourceDetail
    expect(detail).toMatchObject({ name, used: 1, waitersTotal: 0, holders: [{ fence: hold.fence }] })
  })

  it('pages through a long line', async () => {
    const { locks, get } = stageOf()
    const strict = locks.mutex('hot', { order: 'strict' })
    await strict.acquire()
    for (let i = 0; i < 30; i++) strict.acquire({ label: `${i}` }).catch(() => {})
    const detail = (await (await get('api/resources/hot?offset=10&limit=5')).json()) as ResourceDetail
    expect(detail).toMatchObject({ waitersTotal: 30, offset: 10 })
    expect(detail.waiters.map(({ label }) => label)).toEqual(['10', '11', '12', '13', '14'])
  })

  it('that nobody is in gives 404', async () => {
    const { get } = stageOf()
    expect((await get('api/resources/nobody')).status).toBe(404)
  })
})

describe('events', () => {
  it('begin with everything, then tell what changed and what is gone, with a timeline', async () => {
    const { locks, get } = stageOf()
    // Long leases: a renewal would be an event, too.
    const first = await locks.mutex('a').acquire({ label: 'first', lease: '1h' })
    const events = eventsOf(await get('api/events?resource=b'))
    const next = async <T>(event: string): Promise<T> => {
      for await (const each of { [Symbol.asyncIterator]: () => ({ next: () => events.next() }) })
        if (each.event === event) return each.data
      throw new Error('the stream has ended')
    }
    const all = await next<ResourceChanges>('resources')
    expect(all).toMatchObject({ isAll: true, total: 1, changed: [{ name: 'a' }], gone: [] })
    expect(await next<ResourceDetail>('resource')).toMatchObject({ name: 'b', holders: [] })
    const second = await locks.mutex('b').acquire({ label: 'second', lease: '1h' })
    expect(await next<ResourceChanges>('resources')).toMatchObject({
      isAll: false,
      changed: [{ name: 'b' }],
      total: 2,
    })
    expect(await next<ResourceDetail>('resource')).toMatchObject({ holders: [{ label: 'second' }] })
    await Promise.all([first.release(), second.release()])
    const left = await next<ResourceChanges>('resources')
    expect(left).toMatchObject({ changed: [], total: 0 })
    expect(left.gone.sort()).toEqual(['a', 'b'])
    const { timeline } = await next<ResourceDetail>('resource')
    expect(timeline).toMatchObject([{ label: 'second', state: 'held', end: 'left', fence: second.fence }])
    await events.return()
  })

  it('come through the bridge to node:http', async () => {
    const { locks, view } = stageOf()
    const { url } = await listen(view.node)
    const response = await fetch(`${url}/api/events`, {
      headers: { authorization: 'Bearer a-token-of-24-characters' },
    })
    expect(response.headers.get('content-type')).toContain('text/event-stream')
    const events = eventsOf(response)
    expect((await events.next()).value).toMatchObject({ event: 'resources', data: { isAll: true } })
    await locks.mutex('a').acquire()
    expect((await events.next()).value).toMatchObject({ data: { changed: [{ name: 'a' }] } })
    await events.return()
  })
})

it('shows a hold whose lease ends later than any date, and breaks it', async () => {
  const { locks, get, post } = stageOf({ allowChanges: true })
  const lease = '100000000d'
  const expires = '9999-12-31T23:59:59.999Z'
  const hold = await locks.mutex('a').acquire({ lease })
  const leadership = await locks.election('main').campaign({ id: 'node-1', lease })
  await locks.once('nightly', { atLeast: lease, atMost: lease }, async () => {})
  const list = (await (await get('api/resources')).json()) as ResourceList
  expect(list.resources.map(({ name, holder }) => [name, holder?.expires])).toContainEqual(['a', expires])
  expect(await (await get('api/resources/a')).json()).toMatchObject({ holders: [{ expires }] })
  const events = eventsOf(await get('api/events'))
  expect((await events.next()).value).toMatchObject({ event: 'resources', data: { isAll: true } })
  await events.return()
  expect(await (await get('api/overview')).json()).toMatchObject({
    elections: [{ leader: { expires } }],
    once: [{ last: { keptUntil: expires } }],
  })
  for await (const { holders } of locks.inspect())
    for (const holder of holders) expect(holder.expires.getTime()).toBe(8.64e15)
  const broken = await post('api/resources/a/break', { fence: hold.fence })
  expect(await broken.json()).toMatchObject({ revoked: [{ fence: hold.fence, expires }] })
  await leadership.resign()
})

it('tells about the server, and about the audit log', async () => {
  const { get } = stageOf({ allowLocks: true })
  expect(await (await get('api/info')).json()).toEqual({
    version: expect.stringMatching(/^\d+\.\d+\.\d+/),
    store: 'memory',
    spaces: ['default'],
    space: 'default',
    allowChanges: false,
    allowLocks: true,
    user: 'token',
    pushes: true,
  })
  expect(await (await get('api/audit')).json()).toEqual({ entries: [] })
  expect(await (await get('api/doctor')).json()).toHaveProperty('findings')
})

it('says why the store is down to this machine, but not to what a proxy on it forwards', async () => {
  const store = new InterceptedStore(memory())
  const { view } = stageOf({}, store)
  store.cut()
  const ready = async (headers: Record<string, string>, address: string) =>
    (await view.fetch(new Request('http://localhost/readyz', { headers }), { address })).json()
  expect(await ready({}, '127.0.0.1')).toHaveProperty('reason')
  expect(await ready({}, '10.0.0.1')).toEqual({ status: 'unavailable' })
  expect(await ready({ 'x-forwarded-for': '10.0.0.1' }, '127.0.0.1')).toEqual({ status: 'unavailable' })
})

it('asks the store about another space with the timeout of the given client', async () => {
  const store = memory()
  const { locks } = stageOf({}, store, { storeTimeout: '77s' })
  const other = new Holdfast(store, { space: 'other' })
  await other.mutex('a').acquire()
  const spaces = new Spaces(locks, false)
  onTestFinished(async () => {
    await spaces.close()
    await other.close({ drain: 0 })
  })
  const { context } = await spaces.of('other')
  expect(context.engine.calls.storeTimeoutMs).toBe(77_000)
})

it('serves the page and nothing else as files', async () => {
  const { view } = stageOf()
  const page = await view.fetch(new Request('http://localhost/'))
  expect(page.status).toBe(200)
  expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
  expect(await page.text()).toContain('Holdfast')
})
