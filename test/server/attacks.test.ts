import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import type { DashboardOptions } from '../../src/server/index.js'
import { checkDashboardOptions } from '../../src/server/options.js'
import type { AuditEntry } from '../../src/server/shapes.js'
import { eventsOf, listen, stageOf, TOKEN } from './dashboards.js'

const PROTECTED = [
  ['GET', 'api/info'],
  ['GET', 'api/resources'],
  ['GET', 'api/resources/a'],
  ['GET', 'api/resource?name=a'],
  ['GET', 'api/doctor'],
  ['GET', 'api/audit'],
  ['GET', 'api/events'],
  ['GET', 'metrics'],
  ['POST', 'api/resources/a/break'],
  ['POST', 'api/resources/a/resize'],
  ['POST', 'api/resource/break?name=a'],
  ['POST', 'v1/locks/a'],
  ['POST', 'v1/locks/a/try'],
  ['GET', 'v1/locks/a'],
  ['PUT', 'v1/holds/a'],
  ['DELETE', 'v1/holds/a'],
] as const

function ask(method: string, path: string, headers: Record<string, string> = {}): Request {
  const body = method === 'POST' || method === 'PUT' ? { body: '{}' } : {}
  return new Request(`http://localhost/${path}`, {
    method,
    headers: { 'content-type': 'application/json', 'x-holdfast-change': '1', ...headers },
    ...body,
  })
}

describe('without the token', () => {
  it.each(PROTECTED)('nothing gets in: %s %s', async (method, path) => {
    const { view } = stageOf({ allowChanges: true })
    const tries = [
      {},
      { authorization: 'Bearer wrong-token-of-24-chars' },
      { authorization: `Basic ${TOKEN}` },
      { authorization: `Bearer ${TOKEN}x` },
      { authorization: `Bearer ${TOKEN.slice(1)}` },
      { cookie: `holdfast_token=${TOKEN}` },
    ]
    for (const headers of tries) {
      const response = await view.fetch(ask(method, path, headers as Record<string, string>))
      expect(response.status, JSON.stringify(headers)).toBe(401)
      expect(response.headers.get('www-authenticate')).toMatch(/^Bearer/)
    }
    // The same with the token in the address: it counts for nothing.
    const joint = path.includes('?') ? '&' : '?'
    expect((await view.fetch(ask(method, `${path}${joint}token=${TOKEN}`))).status).toBe(401)
  })

  it('every path of the table is protected, but for those that are meant to be open', async () => {
    const { view } = stageOf()
    for (const path of ['', 'app.js', 'app.css', 'healthz', 'readyz', 'openapi.json'])
      expect((await view.fetch(ask('GET', path))).status, path).toBe(200)
  })

  it('guessing is limited, and the right token is not told from a wrong one then', async () => {
    const { view } = stageOf()
    const wrong = () =>
      view.fetch(ask('GET', 'api/info', { authorization: 'Bearer wrong-token-of-24-chars' }))
    for (let i = 0; i < 10; i++) expect((await wrong()).status).toBe(401)
    expect((await wrong()).status).toBe(429)
    const right = await view.fetch(ask('GET', 'api/info', { authorization: `Bearer ${TOKEN}` }))
    expect(right.status).toBe(429)
  })
})

describe('sign-in', () => {
  it('gives a cookie that is not the token, and takes it back', async () => {
    const { view } = stageOf({ basePath: '/locks' })
    const login = (token: string) =>
      view.fetch(
        new Request('http://localhost/locks/login', {
          method: 'POST',
          body: JSON.stringify({ token }),
          headers: { 'content-type': 'application/json' },
        }),
      )
    expect((await login('wrong-token-of-24-chars')).status).toBe(401)
    const response = await login(TOKEN)
    const cookie = response.headers.get('set-cookie') ?? ''
    expect(cookie).toMatch(/^holdfast_token=[0-9a-f]{64}; Path=\/locks\/; HttpOnly; SameSite=Strict$/)
    expect(cookie).not.toContain(TOKEN)
    const value = cookie.split(';')[0] ?? ''
    const info = (headers: Record<string, string>) =>
      view.fetch(new Request('http://localhost/locks/api/info', { headers }))
    expect((await info({ cookie: `other=1; ${value}` })).status).toBe(200)
    expect((await info({ authorization: `Bearer ${value.split('=')[1]}` })).status).toBe(401)
    const out = await view.fetch(new Request('http://localhost/locks/logout', { method: 'POST' }))
    expect(out.headers.get('set-cookie')).toMatch(/^holdfast_token=; .*Max-Age=0$/)
  })

  it('is secure behind https', async () => {
    const { view } = stageOf()
    const response = await view.fetch(
      new Request('https://locks.example/login', {
        method: 'POST',
        body: JSON.stringify({ token: TOKEN }),
        headers: { 'content-type': 'application/json' },
      }),
    )
    expect(response.headers.get('set-cookie')).toMatch(/; Secure$/)
  })
})

describe('authorize', () => {
  it('decides by the request, and names the user in the audit log', async () => {
    const { view, locks } = stageOf({
      token: undefined,
      allowChanges: true,
      authorize: async (request) => (request.headers.get('x-user') === 'ada' ? { user: 'ada' } : null),
    })
    await locks.mutex('a').acquire()
    expect((await view.fetch(ask('GET', 'api/info'))).status).toBe(401)
    const info = await view.fetch(ask('GET', 'api/info', { 'x-user': 'ada' }))
    expect(await info.json()).toMatchObject({ user: 'ada' })
    await view.fetch(ask('POST', 'api/resources/a/break', { 'x-user': 'ada' }))
    const audit = await view.fetch(ask('GET', 'api/audit', { 'x-user': 'ada' }))
    expect(await audit.json()).toMatchObject({ entries: [{ who: 'ada', action: 'break', result: 'done' }] })
  })

  it('or a token is required', () => {
    const refused: DashboardOptions[] = [
      {},
      { allowChanges: true },
      { token: 'short' },
      { token: 'ä'.repeat(20) },
    ]
    for (const options of refused) expect(() => checkDashboardOptions(options)).toThrow(/token/)
    expect(() => checkDashboardOptions({ allowLoopback: true })).not.toThrow()
  })
})

describe('other sites', () => {
  const foreign = [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: 'http://localhost:1' },
  ]
  it.each(foreign)('are refused: %j', async (headers) => {
    const { view, locks } = stageOf({ allowChanges: true })
    const hold = await locks.mutex('a').acquire()
    for (const [method, path] of PROTECTED) {
      const request = ask(method, path, {
        ...(headers as Record<string, string>),
        authorization: `Bearer ${TOKEN}`,
      })
      const response = await view.fetch(request)
      expect(response.status, path).toBe(403)
      expect(await response.json()).toMatchObject({ code: 'CROSS_SITE' })
    }
    expect(hold.isValid).toBe(true)
  })

  it('cannot send a change as a form, or as a simple request', async () => {
    const { view, locks } = stageOf({ allowChanges: true })
    const hold = await locks.mutex('a').acquire()
    const authorization = `Bearer ${TOKEN}`
    const post = (headers: Record<string, string>) =>
      view.fetch(
        new Request('http://localhost/api/resources/a/break', { method: 'POST', body: '{}', headers }),
      )
    const change = { 'x-holdfast-change': '1' }
    expect((await post({ authorization, 'content-type': 'application/json' })).status).toBe(403)
    expect((await post({ authorization, ...change, 'content-type': 'text/plain' })).status).toBe(415)
    const form = { ...change, 'content-type': 'application/x-www-form-urlencoded' }
    expect((await post({ authorization, ...form })).status).toBe(415)
    expect(hold.isValid).toBe(true)
  })

  it.each([
    'evil.example',
    'evil.example:8470',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '10.0.0.1',
  ])('cannot reach a server without a token by a name of their own: %s', async (host) => {
    const { view } = stageOf({ token: undefined, allowLoopback: true })
    const response = await view.fetch(new Request(`http://${host}/api/info`, { headers: { host } }))
    expect(response.status).toBe(403)
    for (const own of ['localhost', '127.0.0.1:8470', '[::1]:8470'])
      expect(
        (await view.fetch(new Request(`http://${own}/api/info`, { headers: { host: own } }))).status,
      ).toBe(200)
  })

  it('a proxy that forwards to a server without a token is refused', async () => {
    const { view } = stageOf({ token: undefined, allowLoopback: true })
    for (const name of ['forwarded', 'x-forwarded-for', 'x-forwarded-host'])
      expect((await view.fetch(ask('GET', 'api/info', { [name]: 'for=1.2.3.4' }))).status).toBe(403)
  })
})

describe('names and labels of other processes', () => {
  it('are data, never markup or headers', async () => {
    const { locks, get } = stageOf()
    const evil = `<script>alert(1)</script>"'\r\nset-cookie: a=b\u2028`
    await locks.mutex(evil).acquire({ label: evil, owner: evil })
    const list = await get('api/resources')
    expect(list.headers.get('content-type')).toBe('application/json')
    expect(list.headers.get('x-content-type-options')).toBe('nosniff')
    expect(await list.json()).toMatchObject({
      resources: [{ name: evil, holder: { label: evil, owner: evil } }],
    })
    const one = await get(`api/resources/${encodeURIComponent(evil)}`)
    expect(await one.json()).toMatchObject({ name: evil })
    const problem = await get(`api/resources?state=${encodeURIComponent(evil)}`)
    expect(problem.headers.get('content-type')).toBe('application/problem+json')
    expect([...problem.headers.keys()]).not.toContain('set-cookie')
  })

  it('cannot break out of an event', async () => {
    const { locks, get } = stageOf()
    await locks.mutex('a\n\nevent: fine\ndata: {}\n\n').acquire({ label: '\r\n\r\nevent: x' })
    const events = eventsOf(await get('api/events'))
    expect((await events.next()).value).toMatchObject({
      event: 'resources',
      data: { changed: [{ name: 'a\n\nevent: fine\ndata: {}\n\n' }] },
    })
    await locks.mutex('b').acquire()
    expect((await events.next()).value).toMatchObject({
      event: 'resources',
      data: { changed: [{ name: 'b' }] },
    })
    await events.return()
  })

  it('are no labels of metrics', async () => {
    const { locks, get } = stageOf()
    await locks.mutex('a"} 1\nevil 1').acquire()
    const text = await (await get('metrics')).text()
    expect(text).toContain('holdfast_line_holds{kind="lock"} 1\n')
    expect(text).toContain('holdfast_store_up 1\n')
    expect(text).not.toContain('evil')
  })
})

describe('paths', () => {
  it.each([
    '/../package.json',
    '/..%2fpackage.json',
    '/%2e%2e/%2e%2e/etc/passwd',
    '/app.js/../../../package.json',
    '/app.js%00.html',
    '/index.html',
    '/.git/config',
    '//evil.example/',
    '/api//resources',
    '/constructor',
    '/api/__proto__',
  ])('lead nowhere: %s', async (path) => {
    const { view } = stageOf()
    const { port } = await listen(view.node)
    const text = await raw(port, `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`)
    expect(text).toMatch(/^HTTP\/1.1 404 /)
    expect(text).toContain('NOT_FOUND')
  })

  it('that are not encoded correctly are refused', async () => {
    const { get } = stageOf()
    expect((await get('api/resources/%ff')).status).toBe(400)
    expect((await get('api/resources/%')).status).toBe(400)
  })

  it('of another method say which one', async () => {
    const { view } = stageOf()
    const response = await view.fetch(ask('DELETE', 'api/info'))
    expect(response.status).toBe(405)
    expect(response.headers.get('allow')).toBe('GET')
  })
})

/** Sends the text as it is, and gives all that comes back. */
function raw(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(text))
    socket.setEncoding('utf8').on('data', (part) => {
      answer += part
    })
    socket.once('close', () => resolve(answer))
    socket.once('error', reject)
  })
}

describe('requests over a socket', () => {
  it.each([
    'GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
    'GET / HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n',
    'TRACE / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
  ])('that make no sense are refused: %j', async (text) => {
    const { view } = stageOf()
    const { port } = await listen(view.node)
    expect(await raw(port, text)).toMatch(/^HTTP\/1.1 400 /)
  })

  it('with a body that is too large are refused, declared or not', async () => {
    const { view, locks } = stageOf({ allowChanges: true })
    const hold = await locks.mutex('a').acquire()
    const { url } = await listen(view.node)
    const large = JSON.stringify({ fence: 'x'.repeat(17 * 1024) })
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const part of [large.slice(0, 9000), large.slice(9000)]) controller.enqueue(Buffer.from(part))
        controller.close()
      },
    })
    for (const body of [large, stream]) {
      const response = await fetch(`${url}/api/resources/a/break`, {
        method: 'POST',
        body,
        duplex: 'half',
        headers: {
          authorization: `Bearer ${TOKEN}`,
          'content-type': 'application/json',
          'x-holdfast-change': '1',
        },
      } as RequestInit)
      expect(response.status).toBe(413)
      expect(await response.json()).toMatchObject({ code: 'BODY_TOO_LARGE' })
    }
    expect(hold.isValid).toBe(true)
  })
})

describe('changes', () => {
  it('are refused by a server that only shows, and written down all the same', async () => {
    const written: AuditEntry[] = []
    const { locks, post, get } = stageOf({ audit: (entry) => written.push(entry) })
    const hold = await locks.mutex('a').acquire()
    const response = await post('api/resources/a/break', { fence: hold.fence })
    expect(response.status).toBe(403)
    expect(await response.json()).toMatchObject({ code: 'READ_ONLY' })
    expect(hold.isValid).toBe(true)
    const entry = { who: 'token', action: 'break', space: 'default', resource: 'a', result: 'READ_ONLY' }
    expect(written).toMatchObject([entry])
    expect(await (await get('api/audit')).json()).toMatchObject({ entries: [entry] })
  })

  it('are written down, whatever becomes of them', async () => {
    const written: AuditEntry[] = []
    const { locks, post, view } = stageOf({ allowChanges: true, audit: (entry) => written.push(entry) })
    const hold = await locks.mutex('a').acquire({ label: 'stuck' })
    const broken = await post('api/resources/a/break', { fence: hold.fence })
    expect(await broken.json()).toMatchObject({ revoked: [{ label: 'stuck', fence: hold.fence }] })
    await expect.poll(() => hold.isValid).toBe(false)
    await post('api/resources/a/break', { fence: 'all' })
    await post('api/resources/a/break', { fense: 1 })
    await view.fetch(ask('POST', 'api/resources/a/break'))
    await post('api/resources/a/break', {}, { 'sec-fetch-site': 'cross-site' })
    await post('api/resources/a/break?space=none', {})
    await post('api/resources/a/break', {}, { 'content-type': 'text/plain' })
    await locks.semaphore('gpu', 4).acquire()
    expect(await (await post('api/resources/gpu/resize', { capacity: 6 })).json()).toEqual({ capacity: 6 })
    await post('api/resources/gpu/resize', { capacity: 0 })
    expect(written.map(({ action, detail, result }) => [action, detail, result])).toEqual([
      ['break', `fence ${hold.fence}`, 'done'],
      ['break', 'fence all', 'INVALID_ARGUMENT'],
      ['break', '', 'INVALID_ARGUMENT'],
      ['break', '', 'UNAUTHORIZED'],
      ['break', '', 'CROSS_SITE'],
      ['break', '', 'NOT_FOUND'],
      ['break', '', 'UNSUPPORTED_MEDIA_TYPE'],
      ['resize', 'capacity 6', 'done'],
      ['resize', 'capacity 0', 'INVALID_ARGUMENT'],
    ])
    for (const { at } of written) expect(new Date(at).toISOString()).toBe(at)
  })

  it('are limited', async () => {
    const { post } = stageOf({ allowChanges: true })
    const statuses: number[] = []
    for (let i = 0; i < 60; i++) statuses.push((await post('api/resources/a/break', {})).status)
    expect(statuses.slice(0, 30)).toEqual(Array(30).fill(200))
    expect(statuses).toContain(429)
  })

  it('of strangers do not fill the log', async () => {
    const written: AuditEntry[] = []
    const { view } = stageOf({ audit: (entry) => written.push(entry) })
    for (let i = 0; i < 300; i++) await view.fetch(ask('POST', 'api/resources/a/break'))
    expect(written.length).toBeGreaterThanOrEqual(100)
    expect(written.length).toBeLessThan(200)
  })
})
