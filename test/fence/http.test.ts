import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import {
  FENCE_HEADER,
  type Fenced,
  type FencedRequest,
  type FenceRegister,
  fencedFetch,
  fenceHeaders,
  type HttpGuardOptions,
  httpGuard,
  memoryGuard,
  parseFence,
} from '../../src/fence/index.js'
import { serve, serveFetch } from './http-server.js'
import { pausedWorkerIsRefused } from './paused.js'
import { openScene, sqliteFile } from './sql-cases.js'

const hold = (fence: number, resource = 'order:42'): Fenced => ({ resource, fence, isExclusive: true })
const scene = () => openScene({ driver: 'sqlite', url: sqliteFile, skip: undefined })

describe('the header', () => {
  it.each(['order:42', 'a b', 'ä,;"%', 'line\nbreak', '\0', '😀', 'x'.repeat(2000), '100%25'])(
    'carries %j',
    (resource) => {
      const header = fenceHeaders(hold(2 ** 53 - 1, resource))[FENCE_HEADER] ?? ''
      expect(header).toMatch(/^[!-~]+ [!-~]+$/)
      expect(header).not.toContain(',')
      expect(new Headers([[FENCE_HEADER, header]]).get(FENCE_HEADER)).toBe(header)
      expect(parseFence(header)).toEqual({ resource, fence: 2 ** 53 - 1 })
    },
  )

  it.each([
    '',
    '5',
    ' 5 a',
    '5 a b',
    '5 %',
    '5 %ff',
    '0 a',
    '-1 a',
    '5.5 a',
    '1e3 a',
    '9007199254740992 a',
    '5 a, 6 a',
    'a 5',
  ])('is not %j', (header) => {
    expect(() => parseFence(header)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
  })

  it('is not made of a shared hold', () => {
    expect(() => fenceHeaders({ ...hold(5), isExclusive: false })).toThrow(/shared/)
  })
})

/** The two kinds of servers. Both write through the guard of a database, with the fence that the middleware hands on. */
const kinds = {
  async connect(options: HttpGuardOptions, register: FenceRegister = memoryGuard()) {
    const database = await scene()
    const guard = httpGuard(register, options)
    const handled: unknown[] = []
    const write = async (request: FencedRequest, response: import('node:http').ServerResponse) => {
      handled.push(request.fenced)
      const content = await text(request)
      const update = { table: database.table, set: { content }, where: { id: 1 } }
      if (request.fenced) database.guard.update(request.fenced, update)
      response.writeHead(204).end()
    }
    const url = await serve((request, response) => {
      const fail = (error: unknown) => response.writeHead(500).end(String(error))
      guard.connect(request, response, (error) => {
        if (error) return fail(error)
        write(request, response).catch((reason) => guard.connectError(reason, request, response, fail))
      })
    })
    return { database, url, handled }
  },
  async fetch(options: HttpGuardOptions, register: FenceRegister = memoryGuard()) {
    const database = await scene()
    const handled: unknown[] = []
    const handler = httpGuard(register, options).fetch(async (request, fenced) => {
      handled.push(fenced)
      const update = { table: database.table, set: { content: await request.text() }, where: { id: 1 } }
      if (fenced) database.guard.update(fenced, update)
      return new Response(null, { status: 204 })
    })
    return { database, url: await serveFetch(handler), handled }
  },
}

describe.each(['connect', 'fetch'] as const)('a guarded service, %s style', (kind) => {
  const put = (url: string, header?: string): Promise<Response> =>
    fetch(url, { method: 'PUT', body: 'x', headers: header === undefined ? {} : { [FENCE_HEADER]: header } })

  it('refuses stale requests with 409 and a problem document, before its handler', async () => {
    const { url, database, handled } = await kinds[kind]({})
    expect((await put(url, '7 order:42')).status).toBe(204)
    expect((await put(url, '7 order:42')).status).toBe(204)
    const refused = await put(url, '6 order:42')
    expect(refused.status).toBe(409)
    expect(refused.headers.get('content-type')).toBe('application/problem+json')
    expect(await refused.json()).toMatchObject({
      type: 'urn:holdfast:problem:stale-fence',
      title: 'Stale fence',
      status: 409,
      resource: 'order:42',
      newestFence: 7,
    })
    expect(await database.row()).toEqual({ content: 'x', fence: 7 })
    expect(handled).toEqual(Array(2).fill({ resource: 'order:42', fence: 7 }))
  })

  it('asks for a fence, unless it is optional', async () => {
    const strict = await kinds[kind]({})
    expect((await put(strict.url)).status).toBe(428)
    const malformed = await put(strict.url, 'seven')
    expect([malformed.status, await malformed.json()]).toMatchObject([400, { detail: /percent-encoded/ }])
    const lenient = await kinds[kind]({ optional: true })
    expect((await put(lenient.url)).status).toBe(204)
    expect((await put(lenient.url, 'seven')).status).toBe(400)
  })

  it('takes the fence of the right resource only', async () => {
    const resource = ({ method, url }: { method: string; url: string }) =>
      `${method} ${new URL(url, 'http://localhost').pathname}`
    const { url } = await kinds[kind]({ resource })
    expect((await put(`${url}/a?b`, '7 PUT%20/a')).status).toBe(204)
    const wrong = await put(`${url}/a`, '8 PUT%20/b')
    expect([wrong.status, await wrong.json()]).toMatchObject([400, { title: 'Fence of another resource' }])
  })

  it('passes other failures on', async () => {
    const failing = { check: () => Promise.reject(new Error('register is down')) }
    const { url } = await kinds[kind]({}, failing)
    const response = await put(url, '7 a')
    expect([response.status, await response.text()]).toEqual([500, 'Error: register is down'])
  })

  it('only narrows the window by itself: the write of the handler has to check as well', async () => {
    // A register that lets the old request pass and then holds it up, as a slow disk or a collection of garbage would.
    const register = memoryGuard()
    let letGo = () => {}
    const heldUp = new Promise<void>((resolve) => {
      letGo = resolve
    })
    let isWaiting = () => {}
    const waiting = new Promise<void>((resolve) => {
      isWaiting = resolve
    })
    const { url, database } = await kinds[kind](
      {},
      {
        async check(fenced) {
          await register.check(fenced)
          if (fenced.fence !== 5) return
          isWaiting()
          await heldUp
        },
      },
    )
    const late = fencedFetch(hold(5), url, { method: 'PUT', body: 'stale' })
    const refusal = expect(late).rejects.toMatchObject({ code: 'STALE_FENCE', newestFence: 6 })
    await waiting
    expect((await fencedFetch(hold(6), url, { method: 'PUT', body: 'newest' })).status).toBe(204)
    letGo()
    await refusal
    expect(await database.row()).toEqual({ content: 'newest', fence: 6 })
  })

  it('stops a worker that was paused', async () => {
    const shared = await scene()
    const { url, database } = await kinds[kind]({}, shared.guard)
    const row = async () => (await database.row())?.content
    await pausedWorkerIsRefused({ kind: 'http', url }, row)
  })
})

describe('fencedFetch', () => {
  it('hands out every other response, body and all, and keeps the headers that were given', async () => {
    const url = await serve((request, response) => {
      response.writeHead(409, { 'content-type': 'application/problem+json' })
      response.end(JSON.stringify({ type: 'about:blank', got: request.headers['x-own'] }))
    })
    const fromInit = await fencedFetch(hold(5), url, { headers: { 'x-own': 'init' } })
    expect([fromInit.status, await fromInit.json()]).toEqual([409, { type: 'about:blank', got: 'init' }])
    const fromRequest = await fencedFetch(hold(5), new Request(url, { headers: { 'x-own': 'request' } }))
    expect(await fromRequest.json()).toMatchObject({ got: 'request' })
  })

  it('uses the fetch that it is given, and refuses a shared hold before that', async () => {
    const calls: unknown[] = []
    const own: typeof fetch = async (input, init) => {
      calls.push([input, new Headers(init?.headers).get(FENCE_HEADER)])
      return new Response('own')
    }
    expect(await (await fencedFetch(hold(5), 'http://x.test', {}, own)).text()).toBe('own')
    await expect(fencedFetch({ ...hold(5), isExclusive: false }, 'http://x.test', {}, own)).rejects.toThrow(
      /shared/,
    )
    expect(calls).toEqual([['http://x.test', '5 order:42']])
  })
})
