import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { transformSync } from 'esbuild'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Bench } from '../cli/processes.js'
import { root } from '../project/sources.js'
import { freePort } from '../servers/ports.js'
import { eventsOf, TOKEN } from './dashboards.js'
import { cacheFolder } from './examples.js'

/** The recipe under that heading of the page, as a reader would copy it. */
function recipe(heading: string): string {
  const page = readFileSync(join(root, 'docs/server.md'), 'utf8')
  const [, after = ''] = page.split(`\n${heading}\n`)
  const [, code] = /```ts\n([\s\S]*?)```/.exec(after) ?? []
  if (code === undefined) throw new Error(`no recipe under ${heading}`)
  return code
}

const headers = { authorization: `Bearer ${TOKEN}` }

describe('the dashboard mounted in', () => {
  it.each([
    ['## In your own server', ''],
    ['### Express', '/locks'],
    ['### Fastify', '/locks'],
    ['### Hono', '/locks'],
    ['### Koa', '/locks'],
    ['### NestJS', '/locks'],
  ])('%s', async (heading, mount) => {
    const bench = new Bench()
    const port = await freePort()
    const code = recipe(heading).replaceAll('3000', String(port)).replaceAll('sqlite:./locks.db', bench.store)
    const file = join(cacheFolder(onTestFinished), 'recipe.mjs')
    writeFileSync(file, transformSync(code, { loader: 'ts', format: 'esm' }).code)
    const running = bench.node([file], { DASHBOARD_TOKEN: TOKEN })
    const url = `http://127.0.0.1:${port}${mount}`
    const isUp = () =>
      fetch(`${url}/healthz`).then(
        ({ status }) => status,
        () => running.stderr,
      )
    await expect.poll(isUp).toBe(200)
    // A long lease: a renewal would be an event, too.
    const holder = bench.script('a/b', ['--label', 'me', '--lease', '1h'], 'echo in; read end')
    await holder.wrote(/in/)
    expect((await fetch(`${url}/api/info`)).status).toBe(401)
    const page = await fetch(`${url}/`)
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
    if (mount !== '') {
      const bare = await fetch(url, { redirect: 'manual' })
      expect([bare.status, bare.headers.get('location')]).toEqual([308, `${mount}/`])
    }
    const one = await fetch(`${url}/api/resources/${encodeURIComponent('a/b')}`, { headers })
    expect(await one.json()).toMatchObject({ name: 'a/b', holders: [{ label: 'me' }] })
    const login = await fetch(`${url}/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token: TOKEN }),
    })
    expect(login.headers.get('set-cookie')).toContain(`; Path=${mount}/; `)
    const events = eventsOf(await fetch(`${url}/api/events`, { headers }))
    expect((await events.next()).value).toMatchObject({ event: 'resources', data: { isAll: true } })
    const broken = await fetch(`${url}/api/resources/${encodeURIComponent('a/b')}/break`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', 'x-holdfast-change': '1' },
      body: '{}',
    })
    expect(await broken.json()).toMatchObject({ revoked: [{ label: 'me' }] })
    expect((await events.next()).value).toMatchObject({ event: 'resources', data: { gone: ['a/b'] } })
    await events.return()
    expect((await holder.done).code).toBe(76)
  })
})
