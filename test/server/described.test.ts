import { describe, expect, it, onTestFinished } from 'vitest'
import { Holdfast, HoldfastError } from '../../src/index.js'
import { dashboard } from '../../src/server/index.js'
import { memory } from '../../src/stores/memory/index.js'
import { quorum } from '../../src/stores/quorum/index.js'
import { redis } from '../../src/stores/redis/index.js'
import { InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'
import { describeOn } from '../servers/availability.js'
import { startRedis } from '../servers/redis.js'
import { stageOf, stoppedClock, TOKEN } from './dashboards.js'
import { checked, described, faultsOf, matching } from './openapi.js'

const authorization = `Bearer ${TOKEN}`
const change = { authorization, 'content-type': 'application/json', 'x-holdfast-change': '1' }

interface Asked {
  readonly body?: string
  readonly headers?: Record<string, string>
  readonly query?: string
}

/** Sends a request, and checks the answer against the description. */
async function ask<T = Record<string, unknown>>(
  view: { fetch(request: Request): Promise<Response> },
  method: string,
  path: string,
  { body, headers = change, query = '' }: Asked = {},
): Promise<{ status: number; body: T }> {
  const url = `http://localhost${path.replace('{name}', 'a')}${query}`
  const response = await view.fetch(
    new Request(url, { method, headers, ...(body === undefined ? {} : { body }) }),
  )
  const { status } = response
  return { status, body: await matching<T>(method, path, response) }
}

const LARGE = JSON.stringify({ label: 'x'.repeat(20_000) })
const CHANGES = ['break', 'cancel', 'resize'].map((each) => `/api/resources/{name}/${each}`)
const LOCKS = ['/v1/locks/{name}', '/v1/locks/{name}/try']

describe('every answer matches the description', () => {
  it('of what is shown', async () => {
    const { view, locks } = stageOf()
    const strict = locks.mutex('a', { order: 'strict' })
    await strict.acquire({ label: 'holder' })
    strict.acquire().catch(() => {})
    await locks.election('main').campaign({ id: 'node-1' })
    await locks.latch('ready', 3).countDown()
    locks
      .barrier('phase', 2)
      .meet()
      .catch(() => {})
    await locks.once('nightly', { atLeast: '10m', atMost: '1h' }, async () => {})
    const paths = [
      '/api/info',
      '/api/resources',
      '/api/resources/{name}',
      '/api/overview',
      '/api/doctor',
      '/api/audit',
      '/v1/locks/{name}',
      '/healthz',
      '/readyz',
      '/metrics',
    ]
    for (const path of ['/api/resources', '/api/resources/{name}', '/v1/locks/{name}'])
      expect((await ask(view, 'GET', path, { query: '?limit=x' })).status).toBe(400)
    for (const path of paths) expect((await ask(view, 'GET', path)).status, path).toBe(200)
    const overview = await ask(view, 'GET', '/api/overview')
    expect(overview.body).toMatchObject({
      elections: [{ name: 'main', leader: { isWriter: true }, leaders: [{ id: 'node-1' }], candidates: [] }],
      latches: [{ name: 'ready', total: 3, count: 2 }],
      barriers: [{ name: 'phase', parties: 2 }],
      once: [{ name: 'nightly', running: null, last: { began: expect.any(String) } }],
    })
    await (await view.fetch(new Request('http://localhost/api/events', { headers: change }))).body?.cancel()
    await ask(view, 'GET', '/api/events')
  })

  it('of changes', async () => {
    const { view, locks } = stageOf({ allowChanges: true })
    const hold = await locks.mutex('a', { order: 'strict' }).acquire()
    const waiting = locks.mutex('a', { order: 'strict' }).acquire()
    const failed = expect(waiting).rejects.toMatchObject({ code: 'CANCELLED' })
    const { body } = await ask<{ waiters: { id: string }[] }>(view, 'GET', '/api/resources/{name}')
    const id = JSON.stringify({ id: body.waiters[0]?.id })
    const cancelled = await ask(view, 'POST', '/api/resources/{name}/cancel', { body: id })
    expect(cancelled.body).toMatchObject({ cancelled: [{ id: body.waiters[0]?.id, fence: null }] })
    await failed
    expect((await ask(view, 'POST', '/api/resources/{name}/cancel', { body: id })).body).toEqual({
      cancelled: [],
    })
    const conflict = await ask(view, 'POST', '/api/resources/{name}/resize', { body: '{"capacity":2}' })
    expect(conflict.status).toBe(409)
    const broken = await ask(view, 'POST', '/api/resources/{name}/break', { body: '{}' })
    expect(broken.body).toMatchObject({ revoked: [{ fence: hold.fence }] })
    const gpus = locks.semaphore('a', 4)
    await gpus.acquire()
    // Twice: those that declare the first capacity still get in.
    for (const capacity of [6, 8]) {
      const resized = await ask(view, 'POST', '/api/resources/{name}/resize', {
        body: JSON.stringify({ capacity }),
      })
      expect(resized).toEqual({ status: 200, body: { capacity } })
      await gpus.acquire({ wait: '5s' })
    }
    expect(await gpus.available()).toBe(5)
  })

  it('of refusals', async () => {
    const { view } = stageOf({ allowChanges: true })
    const closed = stageOf().view
    const foreign = { ...change, origin: 'https://evil.example' }
    for (const key of described()) {
      const [method = '', path = '', status] = key.split(' ')
      const body = method === 'POST' || method === 'PUT' ? { body: '{}' } : {}
      if (status === '401')
        expect((await ask(closed, method, path, { ...body, headers: noToken() })).status).toBe(401)
      if (status === '403')
        expect((await ask(view, method, path, { ...body, headers: foreign })).status).toBe(403)
      const { 'content-type': _type, ...bare } = { ...change, 'holdfast-token': 'some token' }
      const headers = method === 'DELETE' ? bare : change
      if (status === '404')
        expect((await ask(view, method, path, { ...body, headers, query: '?space=none' })).status).toBe(404)
    }
    for (const path of [...CHANGES, ...LOCKS]) {
      const plain = { ...change, 'content-type': 'text/plain' }
      expect((await ask(view, 'POST', path, { body: '{', headers: change })).status).toBe(400)
      expect((await ask(view, 'POST', path, { body: LARGE })).status).toBe(413)
      expect((await ask(view, 'POST', path, { body: '{}', headers: plain })).status).toBe(415)
    }
    const token = { ...change, 'holdfast-token': 'some token' }
    for (const method of ['PUT', 'DELETE']) {
      const plain = { ...token, 'content-type': 'text/plain' }
      const path = '/v1/holds/{name}'
      expect((await ask(view, method, path, { body: LARGE, headers: token })).status).toBe(413)
      expect((await ask(view, method, path, { body: '{}', headers: plain })).status).toBe(415)
    }
    for (const path of ['/api/resources/{name}', '/v1/locks/{name}'])
      expect((await ask(view, 'GET', path)).status).toBe(404)
    expect((await ask(view, 'GET', '/api/resources', { query: '?limit=x' })).status).toBe(400)
  })

  it('of too many wrong tokens', async () => {
    const { env } = stoppedClock()
    const { view } = stageOf({}, memory(), { env })
    const headers = { ...change, authorization: 'Bearer wrong-token-of-24-chars' }
    for (let i = 0; i < 10; i++) expect((await ask(view, 'GET', '/api/info', { headers })).status).toBe(401)
    for (const key of described().filter((each) => each.endsWith(' 429'))) {
      const [method = '', path = ''] = key.split(' ')
      const body = method === 'POST' || method === 'PUT' ? { body: '{}' } : {}
      expect((await ask(view, method, path, { ...body, headers })).status, key).toBe(429)
    }
  })

  it('of the lock API', async () => {
    const { view, locks } = stageOf({ allowLocks: true })
    const granted = await ask<{ token: string }>(view, 'POST', '/v1/locks/{name}', { body: '{}' })
    expect(granted.status).toBe(201)
    const token = { ...change, 'holdfast-token': granted.body.token }
    expect((await ask(view, 'POST', '/v1/locks/{name}', { body: '{"wait":0}' })).status).toBe(409)
    expect((await ask(view, 'POST', '/v1/locks/{name}/try', { body: '{}' })).status).toBe(409)
    expect((await ask(view, 'PUT', '/v1/holds/{name}', { body: '{}', headers: token })).status).toBe(200)
    const plain = { ...token, 'content-type': 'text/plain' }
    expect((await ask(view, 'PUT', '/v1/holds/{name}', { body: '{}', headers: plain })).status).toBe(415)
    const { 'content-type': _type, ...bare } = token
    expect((await ask(view, 'DELETE', '/v1/holds/{name}', { headers: bare })).status).toBe(204)
    expect((await ask(view, 'DELETE', '/v1/holds/{name}', { headers: bare })).status).toBe(410)
    expect((await ask(view, 'PUT', '/v1/holds/{name}', { body: '{}', headers: token })).status).toBe(410)
    expect((await ask(view, 'PUT', '/v1/holds/{name}', { body: '{}' })).status).toBe(400)
    expect((await ask(view, 'DELETE', '/v1/holds/{name}', { headers: { authorization } })).status).toBe(400)
    expect((await ask(view, 'POST', '/v1/locks/{name}/try', { body: '{}' })).status).toBe(201)
    for await (const { name } of locks.inspect()) expect(name).toBe('a')
  })

  it('of a hold that is revoked before its client is told', async () => {
    for (const path of LOCKS) {
      const inner = memory()
      const operator = new Holdfast(inner)
      const store = new InterceptedStore(inner)
      const { view } = stageOf({ allowLocks: true }, store)
      store.around = async (call, go) => {
        if (call.method === 'pulse') await operator.breakHold('a')
        const answer = await go()
        // It is renewed before it is given out, because some of its lease has gone.
        return call.method === 'claim' ? { ...answer, leaseMs: 800 } : answer
      }
      const { status, body } = await ask(view, 'POST', path, { body: '{"lease":"1s"}' })
      expect([status, body['code']]).toEqual([410, 'HOLD_LOST'])
      await operator.close()
    }
  })

  it('of a store that cannot do it', async () => {
    const locks = new Holdfast(quorum([memory(), memory(), memory()]))
    const view = dashboard(locks, { token: TOKEN, allowLocks: true })
    onTestFinished(async () => {
      await view.close()
      await locks.close({ drain: 0 })
    })
    for (const [method, path] of [
      ...LOCKS.map((each) => ['POST', each]),
      ['PUT', '/v1/holds/{name}'],
    ] as const)
      expect((await ask(view, method as string, path as string, { body: '{}' })).status).toBe(501)
    expect((await ask(view, 'DELETE', '/v1/holds/{name}')).status).toBe(501)
  })

  it('of too many changes', async () => {
    for (const path of CHANGES) {
      const { view } = stageOf({ allowChanges: true })
      const statuses = new Set<number>()
      for (let i = 0; i < 60; i++)
        statuses.add((await ask(view, 'POST', path, { body: '{"fence":1.5}' })).status)
      expect([...statuses]).toContain(429)
    }
  })

  describeOn('redis', 'of a store that is down', () => {
    it('is a problem document', async () => {
      const server = await startRedis()
      // Not opened: on a busy machine the first answer may take longer than this timeout.
      const locks = new Holdfast(redis(server.url), { storeTimeout: '1s' })
      const view = dashboard(locks, { token: TOKEN, allowChanges: true })
      onTestFinished(async () => {
        await view.close()
        await locks.close({ drain: 0 }).catch((error) => expect(error).toBeInstanceOf(HoldfastError))
        await server.stop()
      })
      await server.kill()
      for (const key of described().filter((each) => each.endsWith(' 503'))) {
        const [method = '', path = ''] = key.split(' ')
        // An event stream tells of the trouble itself.
        if (path === '/api/events') continue
        const body = path.endsWith('resize')
          ? '{"capacity":2}'
          : path.endsWith('cancel')
            ? '{"id":"x"}'
            : '{}'
        const asked = method === 'POST' || method === 'PUT' ? { body } : {}
        const { 'content-type': _type, ...bare } = change
        const headers = { ...(method === 'DELETE' ? bare : change), 'holdfast-token': 'some token' }
        expect((await ask(view, method, path, { ...asked, headers })).status, key).toBe(503)
      }
    })
  })

  it('and every described answer has been seen', async () => {
    const { view } = stageOf({ maxStreams: 1 })
    const open = () => new Request('http://localhost/api/events', { headers: change })
    const first = await view.fetch(open())
    await ask(view, 'GET', '/api/events')
    await first.body?.cancel()
    // These need a server that may be missing here.
    const unseen = described().filter((each) => !checked.has(each) && !each.endsWith(' 503'))
    expect(unseen).toEqual([])
  })
})

function noToken(): Record<string, string> {
  const { authorization: _token, ...headers } = change
  return headers
}

it('the check of shapes notices what is missing, unknown and of another type', () => {
  const schema = { $ref: '#/components/schemas/RenewedHold' }
  const hold = { name: 'a', fence: 1, expires: '2026-01-01T00:00:00.000Z', leaseMs: 5 }
  expect(faultsOf(hold, schema, 'it')).toEqual([])
  expect(faultsOf({ ...hold, fence: '1' }, schema, 'it')).toEqual(['it.fence: is string, not integer'])
  expect(faultsOf({ ...hold, extra: 1 }, schema, 'it')).toEqual(['it.extra is not described'])
  expect(faultsOf({ ...hold, expires: 'soon' }, schema, 'it')).not.toEqual([])
  const { name: _name, ...less } = hold
  expect(faultsOf(less, schema, 'it')).toEqual(['it.name is missing'])
})
