import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { systemEnv } from '../../src/base/env.js'
import { Holdfast } from '../../src/index.js'
import { Audit } from '../../src/server/audit.js'
import { cookieFor } from '../../src/server/cookies.js'
import { routesOf } from '../../src/server/dashboard.js'
import { Guard } from '../../src/server/guard.js'
import type { Dashboard, DashboardOptions } from '../../src/server/index.js'
import { checkDashboardOptions } from '../../src/server/options.js'
import type { Route } from '../../src/server/router.js'
import type { AuditEntry } from '../../src/server/shapes.js'
import { Spaces } from '../../src/server/spaces.js'
import { Streams } from '../../src/server/streams.js'
import { memory } from '../../src/stores/memory/index.js'
import { eventsOf, listen, stageOf, stoppedClock, TOKEN } from './dashboards.js'

/** What needs no token. */
const OPEN = ['', 'app.js', 'app.css', 'healthz', 'readyz', 'openapi.json', 'login', 'logout']

/** Every other path of the table. */
const PROTECTED = everyRoute()
  .filter(({ path }) => !OPEN.includes(path))
  .map(({ method, path }) => {
    const query = path.startsWith('api/resource/') || path === 'api/resource' ? '?name=a' : ''
    return [method, `${path.replace('{name}', 'a')}${query}`] as const
  })

function everyRoute(): Route[] {
  const options = checkDashboardOptions({ token: TOKEN })
  const spaces = new Spaces(new Holdfast(memory()), true)
  const audit = new Audit(systemEnv, undefined)
  const streams = new Streams(systemEnv, 1)
  return routesOf({ options, spaces, audit, streams }, new Guard(systemEnv, options))
}

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
      { cookie: `${cookieFor(TOKEN).name}=${TOKEN}` },
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
    const paths = PROTECTED.map(([, path]) => path)
    expect(paths).toEqual(expect.arrayContaining(['api/overview', 'api/resource/cancel?name=a', 'metrics']))
    expect(paths).toHaveLength(everyRoute().length - OPEN.length)
  })

  it('wrong tokens of an address are limited, and the right one is let in all the same', async () => {
    const { env, pass } = stoppedClock()
    const { view } = stageOf({ allowLocks: true }, memory(), { env })
    const info = async (headers: Record<string, string>, address = '10.0.0.1') =>
      (await view.fetch(ask('GET', 'api/info', headers), { address })).status
    const login = async (token: string) => {
      const headers = { 'content-type': 'application/json' }
      const body = JSON.stringify({ token })
      const request = new Request('http://localhost/login', { method: 'POST', headers, body })
      return (await view.fetch(request, { address: '10.0.0.1' })).status
    }
    const wrong = { authorization: 'Bearer wrong-token-of-24-chars' }
    for (let i = 0; i < 10; i++) expect(await info(wrong)).toBe(401)
    expect(await info(wrong)).toBe(429)
    expect(await info({ cookie: `${cookieFor(TOKEN).name}=wrong` })).toBe(429)
    expect(await login('wrong-token-of-24-chars')).toBe(429)
    // Behind a proxy all clients have one address: one that guesses must not shut the others out.
    expect(await info({ authorization: `Bearer ${TOKEN}` })).toBe(200)
    expect(await login(TOKEN)).toBe(200)
    expect(await info({})).toBe(401)
    expect(await info(wrong, '10.0.0.2')).toBe(401)
    pass(6000)
    expect(await info(wrong)).toBe(401)
    expect(await info(wrong)).toBe(429)
  })
})

/** The cookie that a sign-in gives: its name and its value. */
async function cookieOf(view: Dashboard, token: string): Promise<string> {
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ token })
  const response = await view.fetch(new Request('http://localhost/login', { method: 'POST', headers, body }))
  return (response.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
}

function nameOf(cookie: string): string {
  return cookie.split('=')[0] ?? ''
}

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
    expect(cookie).toMatch(
      /^holdfast_token_[0-9a-f]{8}=[0-9a-f]{64}; Path=\/locks\/; HttpOnly; SameSite=Strict$/,
    )
    expect(cookie).not.toContain(TOKEN)
    const value = cookie.split(';')[0] ?? ''
    const info = (headers: Record<string, string>) =>
      view.fetch(new Request('http://localhost/locks/api/info', { headers }))
    expect((await info({ cookie: `other=1; ${value}` })).status).toBe(200)
    expect((await info({ authorization: `Bearer ${value.split('=')[1]}` })).status).toBe(401)
    const out = await view.fetch(new Request('http://localhost/locks/logout', { method: 'POST' }))
    expect(out.headers.get('set-cookie')).toMatch(/^holdfast_token_[0-9a-f]{8}=; .*Max-Age=0$/)
  })

  it('on one port does not end the sign-in on another: browsers send cookies to both', async () => {
    const { env } = stoppedClock()
    const other = 'another-token-of-24-chars'
    const [one, two] = [TOKEN, other].map((token) => stageOf({ token }, memory(), { env }).view)
    if (!one || !two) throw new Error('there are two')
    const [first, second] = [await cookieOf(one, TOKEN), await cookieOf(two, other)]
    // More often than wrong tokens are forgiven.
    for (let i = 0; i < 12; i++) {
      const refused = await two.fetch(ask('GET', 'api/info', { cookie: first }))
      expect([refused.status, refused.headers.get('set-cookie')]).toEqual([401, null])
    }
    const cookie = `${first}; ${second}`
    for (const view of [one, two])
      expect((await view.fetch(ask('GET', 'api/info', { cookie }))).status).toBe(200)
    const out = await two.fetch(new Request('http://localhost/logout', { method: 'POST' }))
    expect(out.headers.get('set-cookie')).toMatch(new RegExp(`^${nameOf(second)}=; .*Max-Age=0$`))
    expect(nameOf(second)).not.toBe(nameOf(first))
  })

  it('tries every cookie of that name: another path may have one, too', async () => {
    const { view } = stageOf()
    const right = await cookieOf(view, TOKEN)
    const cookie = `${nameOf(right)}=wrong; ${right}`
    expect((await view.fetch(ask('GET', 'api/info', { cookie }))).status).toBe(200)
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
    const info = async (name: string) => {
      const request = new Request(`http://${name}/api/info`, { headers: { host: name } })
      return (await view.fetch(request, { address: '127.0.0.1' })).status
    }
    expect(await info(host)).toBe(403)
    for (const own of ['localhost', '127.0.0.1:8470', '[::1]:8470']) expect(await info(own)).toBe(200)
  })

  it.each([undefined, '10.0.0.1', '::ffff:10.0.0.1'])(
    'a server without a token does not answer the address %s, whatever the host is called',
    async (address) => {
      const { view } = stageOf({ token: undefined, allowLoopback: true })
      const response = await view.fetch(ask('GET', 'api/info'), { address })
      expect(response.status).toBe(403)
      expect(await response.json()).toMatchObject({ code: 'FORBIDDEN' })
    },
  )

  it('a connection that has ended is not taken for one of this machine', async () => {
    const { view } = stageOf({ token: undefined, allowLoopback: true })
    const status = new Promise<number>((resolve) => {
      void listen(async (request, response) => {
        request.socket.destroy()
        await view.node(request, response)
        resolve(response.statusCode)
      }).then(({ url }) => fetch(`${url}/api/info`).catch(() => {}))
    })
    expect(await status).toBe(403)
  })

  it('a proxy that forwards to a server without a token is refused', async () => {
    const { view } = stageOf({ token: undefined, allowLoopback: true })
    for (const name of ['forwarded', 'x-forwarded-for', 'x-forwarded-host'])
      expect(
        (await view.fetch(ask('GET', 'api/info', { [name]: 'for=1.2.3.4' }), { address: '127.0.0.1' }))
          .status,
      ).toBe(403)
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

it('a client that goes on sending a body that is too large gets its refusal', async () => {
  const { view } = stageOf()
  const { port } = await listen(view.node)
  let answer = ''
  const socket = connect(port, '127.0.0.1')
  socket
    .on('error', () => {})
    .on('data', (part) => {
      answer += part
    })
  const closed = new Promise((resolve) => socket.once('close', resolve))
  const head = ['POST /login HTTP/1.1', 'Host: localhost', 'Content-Type: application/json']
  socket.write([...head, 'Transfer-Encoding: chunked', '', ''].join('\r\n'))
  const chunk = `4000\r\n${'x'.repeat(0x4000)}\r\n`
  const more = (): void => {
    if (socket.destroyed) return
    socket.write(chunk)
    setImmediate(more)
  }
  more()
  await closed
  expect(answer).toMatch(/^HTTP\/1.1 413 /)
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
      ['break', `fence ${hold.fence}`, 'begun'],
      ['break', `fence ${hold.fence}`, 'done'],
      ['break', 'fence all', 'begun'],
      ['break', 'fence all', 'INVALID_ARGUMENT'],
      ['break', '', 'INVALID_ARGUMENT'],
      ['break', '', 'UNAUTHORIZED'],
      ['break', '', 'CROSS_SITE'],
      ['break', '', 'NOT_FOUND'],
      ['break', '', 'UNSUPPORTED_MEDIA_TYPE'],
      ['resize', 'capacity 6', 'begun'],
      ['resize', 'capacity 6', 'done'],
      ['resize', 'capacity 0', 'begun'],
      ['resize', 'capacity 0', 'INVALID_ARGUMENT'],
    ])
    for (const { at } of written) expect(new Date(at).toISOString()).toBe(at)
  })

  it('whose value cannot become text are refused, and written down', async () => {
    const { post, get } = stageOf({ allowChanges: true })
    const fields = { break: 'fence', cancel: 'id', resize: 'capacity' }
    for (const [action, field] of Object.entries(fields)) {
      const response = await post(`api/resources/a/${action}`, { [field]: { toString: 1 } })
      expect(await response.json()).toMatchObject({ status: 400, code: 'INVALID_ARGUMENT' })
    }
    const { entries } = (await (await get('api/audit')).json()) as { entries: AuditEntry[] }
    expect(entries.map(({ detail }) => detail)).toEqual([
      'capacity {"toString":1}',
      'id {"toString":1}',
      'fence {"toString":1}',
    ])
  })

  it('are limited', async () => {
    const { post } = stageOf({ allowChanges: true })
    const statuses: number[] = []
    for (let i = 0; i < 60; i++) statuses.push((await post('api/resources/a/break', {})).status)
    expect(statuses.slice(0, 30)).toEqual(Array(30).fill(200))
    expect(statuses).toContain(429)
  })

  it('of strangers do not fill the log, from however many addresses, and hide no user', async () => {
    const written: AuditEntry[] = []
    const { env, pass } = stoppedClock()
    const options = { allowChanges: true, audit: (entry: AuditEntry) => written.push(entry) }
    const { view, post, get } = stageOf(options, memory(), { env })
    await post('api/resources/mine/break', {})
    expect(written.splice(0).map(({ result }) => result)).toEqual(['begun', 'done'])
    for (let i = 0; i < 300; i++) {
      const address = `10.0.${i % 2}.${i % 250}`
      await view.fetch(ask('POST', i % 3 ? 'api/resources/a/break' : 'login'), { address })
    }
    expect(written.splice(0)).toHaveLength(100)
    pass(2000)
    for (let i = 0; i < 10; i++) await view.fetch(ask('POST', 'login'), { address: '10.0.0.1' })
    expect(written.splice(0)).toHaveLength(2)
    // A sign-in that succeeds is written down, whatever was before.
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ token: TOKEN })
    const login = new Request('http://localhost/login', { method: 'POST', headers, body })
    expect((await view.fetch(login, { address: '10.0.0.1' })).status).toBe(200)
    expect(written).toMatchObject([{ action: 'login', who: '10.0.0.1', result: 'done' }])
    const { entries } = (await (await get('api/audit')).json()) as { entries: AuditEntry[] }
    expect(entries[0]).toEqual(written[0])
    expect(entries.at(-1)).toMatchObject({ resource: 'mine', result: 'done' })
  })

  it('of a user that are too many do not fill the log either', async () => {
    const written: AuditEntry[] = []
    const { env } = stoppedClock()
    const { post } = stageOf({ audit: (entry) => written.push(entry) }, memory(), { env })
    for (let i = 0; i < 300; i++) await post('api/resources/a/break', {})
    const refused = (result: string) => written.filter((entry) => entry.result === result)
    expect(refused('READ_ONLY')).toHaveLength(30)
    expect(refused('TOO_MANY_REQUESTS')).toHaveLength(100)
    expect(written.every(({ who }) => who === 'token')).toBe(true)
  })

  it('without a name, or to a host of another name, are written down', async () => {
    const written: AuditEntry[] = []
    const audit = (entry: AuditEntry) => written.push(entry)
    const { post } = stageOf({ allowChanges: true, audit })
    expect((await post('api/resource/break', {})).status).toBe(400)
    const { view } = stageOf({ token: undefined, allowLoopback: true, audit })
    const host = { address: '127.0.0.1' }
    for (const path of ['api/resources/a/break', 'login']) {
      const request = new Request(`http://evil.example/${path}`, { method: 'POST', body: '{}' })
      expect((await view.fetch(request, host)).status).toBe(403)
    }
    expect(written.map(({ action, resource, result }) => [action, resource, result])).toEqual([
      ['break', '', 'INVALID_ARGUMENT'],
      ['break', 'a', 'FORBIDDEN'],
      ['login', '', 'FORBIDDEN'],
    ])
  })

  it.each(['throws', 'rejects'])(
    'are not made if they cannot be written down, because audit %s',
    async (how) => {
      let isFull: (entry: AuditEntry) => boolean = () => true
      const write = (entry: AuditEntry): void => {
        if (isFull(entry)) throw new Error('ENOSPC')
      }
      const audit = how === 'throws' ? write : async (entry: AuditEntry) => write(entry)
      const { locks, post, get } = stageOf({ allowChanges: true, audit })
      const hold = await locks.mutex('a').acquire()
      const refused = await post('api/resources/a/break', {})
      expect(refused.status).toBe(503)
      expect(await refused.json()).toMatchObject({ code: 'AUDIT_UNAVAILABLE' })
      expect((await locks.mutex('a').tryAcquire()) ?? hold).toBe(hold)
      // A refusal stays what it is.
      expect((await post('api/resources/a/break', { fense: 1 })).status).toBe(400)
      // The beginning is written: the answer says what became of it.
      isFull = ({ result }) => result !== 'begun'
      expect(await (await post('api/resources/a/break', {})).json()).toMatchObject({
        revoked: [{ fence: hold.fence }],
      })
      const { entries } = (await (await get('api/audit')).json()) as { entries: AuditEntry[] }
      expect(entries.map(({ result }) => result)).toEqual(['done', 'INVALID_ARGUMENT', 'AUDIT_UNAVAILABLE'])
    },
  )

  it('wait until they are written down', async () => {
    const holders: unknown[] = []
    const audit = async ({ result }: AuditEntry): Promise<void> => {
      // One more round trip than a change takes.
      await locks.ping()
      for await (const line of locks.inspect()) holders.push([result, line.holders.length])
    }
    const { locks, post } = stageOf({ allowChanges: true, audit })
    const hold = await locks.mutex('a').acquire()
    const broken = await post('api/resources/a/break', {})
    expect(await broken.json()).toMatchObject({ revoked: [{ fence: hold.fence }] })
    await expect.poll(() => hold.isValid).toBe(false)
    expect(holders).toEqual([['begun', 1]])
  })
})
