import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Holdfast } from '../../src/index.js'
import { addressesOf, areLoopback } from '../../src/server/listen.js'
import type { ResourceChanges, ResourceList } from '../../src/server/shapes.js'
import { Bench, type Running } from '../cli/processes.js'
import { describeOn } from '../servers/availability.js'
import { startRedis } from '../servers/redis.js'
import { eventsOf, TOKEN } from './dashboards.js'

/** A running `holdfast serve`, and where it listens. */
interface Served {
  readonly running: Running
  readonly url: string
}

async function serve(bench: Bench, args: string[], env: NodeJS.ProcessEnv = {}): Promise<Served> {
  const running = bench.holdfast(['serve', '--port', '0', ...args], env)
  const [, url = ''] = await running.wrote(/ at (http:\S+)\/\n/)
  return { running, url }
}

const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }

describe('holdfast serve', () => {
  it('shows the default store to this machine, and ends cleanly with SIGTERM', async () => {
    const bench = new Bench()
    const { running, url } = await serve(bench, [])
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    const holder = bench.script('deploy', ['--label', 'me'], 'echo in; read end')
    await holder.wrote(/in/)
    const list = (await (await fetch(`${url}/api/resources`)).json()) as ResourceList
    expect(list.resources).toMatchObject([{ name: 'deploy', holder: { label: 'me', pid: holder.pid } }])
    // An open stream does not keep it from ending.
    const stream = await fetch(`${url}/api/events`)
    running.kill('SIGTERM')
    const { code, stderr } = await running.done
    expect(code).toBe(0)
    expect(stderr).toMatch(/^holdfast: without a token, shows sqlite:.* at http:.*\n$/)
    await stream.body?.cancel().catch(() => {})
    holder.type('\n')
    await holder.done
  })

  it.each(['0.0.0.0', '::', '0.0.0.0.'])('refuses to listen on %s without a token', async (host) => {
    const { code, stderr } = await new Bench().holdfast(['serve', '--port', '0', '--host', host]).done
    expect(code).toBe(64)
    expect(stderr).toMatch(/token|not known/)
  })

  it('judges a name by what it resolves to', async () => {
    expect(areLoopback(['127.0.0.1', '::1'])).toBe(true)
    expect(areLoopback(['127.0.0.1', '10.0.0.1'])).toBe(false)
    expect(areLoopback(['::ffff:127.0.0.1'])).toBe(true)
    for (const other of ['0.0.0.0', '::', '128.0.0.1', '127.0.0.1.example', 'fe80::1', ''])
      expect(areLoopback([other]), other).toBe(false)
    expect(areLoopback([])).toBe(false)
    expect(areLoopback(await addressesOf('127.0.0.1'))).toBe(true)
    await expect(addressesOf('no-such-host.invalid')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
  })

  it.each([
    [['--port', '70000'], /--port/],
    [['--port', 'x'], /--port/],
    [['--token-file', '/nowhere'], /token file/],
    [['--audit-log', '/nowhere/log'], /audit log/],
    [['extra'], /no NAME/],
  ])('refuses %j', async (args, message) => {
    const { code, stderr } = await new Bench().holdfast(['serve', ...args]).done
    expect(code).toBe(64)
    expect(stderr).toMatch(message)
  })

  it('refuses a token that is too short', async () => {
    const { code, stderr } = await new Bench().holdfast(['serve', '--port', '0'], { HOLDFAST_TOKEN: 'abc' })
      .done
    expect(code).toBe(64)
    expect(stderr).toMatch(/at least 16 characters/)
    expect(stderr).not.toContain('abc')
  })

  it('with a token listens everywhere, writes the audit log, and never the token', async () => {
    const bench = new Bench()
    const [file, log] = [bench.path('token'), bench.path('audit.jsonl')]
    writeFileSync(file, `${TOKEN}\n`)
    const args = ['--host', '0.0.0.0', '--token-file', file, '--allow-changes', '--audit-log', log]
    const { running, url } = await serve(bench, args)
    const local = url.replace('0.0.0.0', '127.0.0.1')
    expect((await fetch(`${local}/api/info`)).status).toBe(401)
    expect((await fetch(`${local}/healthz`)).status).toBe(200)
    const holder = bench.script('deploy', [], 'echo in; read end')
    await holder.wrote(/in/)
    const change = { ...headers, 'x-holdfast-change': '1' }
    const broken = await fetch(`${local}/api/resources/deploy/break`, {
      method: 'POST',
      headers: change,
      body: '{}',
    })
    expect(broken.status).toBe(200)
    expect((await holder.done).code).toBe(76)
    await fetch(`${local}/api/resources/deploy/break`, {
      method: 'POST',
      headers: change,
      body: '{"fence":"x"}',
    })
    running.kill('SIGTERM')
    const { stdout, stderr } = await running.done
    const entries = readFileSync(log, 'utf8').trimEnd().split('\n')
    expect(entries.map((line) => JSON.parse(line))).toMatchObject([
      { who: 'token', action: 'break', resource: 'deploy', result: 'begun' },
      { who: 'token', action: 'break', resource: 'deploy', result: 'done' },
      { who: 'token', action: 'break', resource: 'deploy', result: 'begun' },
      { who: 'token', action: 'break', resource: 'deploy', result: 'INVALID_ARGUMENT' },
    ])
    expect(stdout + stderr + entries.join('')).not.toContain(TOKEN)
  })

  it('says that a port is in use', async () => {
    const bench = new Bench()
    const { url } = await serve(bench, [])
    const { code, stderr } = await bench.holdfast(['serve', '--port', new URL(url).port]).done
    expect(code).toBe(69)
    expect(stderr).toMatch(/EADDRINUSE.*--port/)
  })

  it.each([
    ['headers', 'GET / HTTP/1.1\r\nHost: localhost\r\n'],
    [
      'a body',
      'POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
    ],
  ])('cuts off a client that does not send the rest of %s, and answers others meanwhile', async (_, text) => {
    const { url } = await serve(new Bench(), [])
    const sockets = Array.from({ length: 200 }, () => connect(Number(new URL(url).port), '127.0.0.1'))
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy()
    })
    const closed = sockets.map(
      (socket) =>
        new Promise<void>((resolve) => {
          socket.on('error', () => {})
          socket.once('close', () => resolve())
          socket.resume().write(text)
        }),
    )
    expect((await fetch(`${url}/api/info`)).status).toBe(200)
    await Promise.all(closed)
    expect((await fetch(`${url}/api/info`)).status).toBe(200)
  })
})

interface Grant {
  token: string
  fence: number
}

describeOn('redis', 'two servers over one Redis', () => {
  it('one grants and is killed; the other renews and releases', async () => {
    const redis = await startRedis()
    onTestFinished(() => redis.stop())
    const bench = new Bench()
    const args = ['--store', redis.url, '--allow-locks']
    const env = { HOLDFAST_TOKEN: TOKEN }
    const [one, other] = await Promise.all([serve(bench, args, env), serve(bench, args, env)])
    const call = (server: Served, method: string, path: string, token?: string, body?: object) =>
      fetch(`${server.url}/v1/${path}`, {
        method,
        headers: { ...headers, ...(token === undefined ? {} : { 'holdfast-token': token }) },
        ...(body ? { body: JSON.stringify(body) } : {}),
      })
    const granted = await call(one, 'POST', 'locks/a', undefined, { lease: '1m' })
    expect(granted.status).toBe(201)
    const { token, fence } = (await granted.json()) as Grant
    const renewed = await call(other, 'PUT', 'holds/a', token, { lease: '1m' })
    expect(await renewed.json()).toMatchObject({ fence })
    one.running.kill('SIGKILL')
    expect((await one.running.done).signal).toBe('SIGKILL')
    expect((await call(other, 'POST', 'locks/a/try', undefined, {})).status).toBe(409)
    expect((await call(other, 'PUT', 'holds/a', token, { lease: '1m' })).status).toBe(200)
    const waiting = call(other, 'POST', 'locks/a', undefined, { wait: '50s' })
    expect((await call(other, 'DELETE', 'holds/a', token)).status).toBe(204)
    const next = (await (await waiting).json()) as Grant
    expect(next.fence).toBeGreaterThan(fence)
    // A server that ends by a signal leaves the holds that it has granted, too.
    other.running.kill('SIGTERM')
    expect((await other.running.done).code).toBe(0)
    const third = await serve(bench, args, env)
    expect((await call(third, 'DELETE', 'holds/a', next.token)).status).toBe(204)
  })

  it('a client that leaves while it waits leaves the line', async () => {
    const redis = await startRedis()
    onTestFinished(() => redis.stop())
    const { url } = await serve(new Bench(), ['--store', redis.url, '--allow-locks'])
    const locks = await Holdfast.open(redis.url)
    onTestFinished(() => locks.close({ drain: 0 }))
    const hold = await locks.mutex('a').acquire()
    const leaving = new AbortController()
    const waiting = fetch(`${url}/v1/locks/a`, {
      method: 'POST',
      body: '{"wait":"50s"}',
      headers,
      signal: leaving.signal,
    }).catch(() => null)
    const waiters = async () => {
      for await (const line of locks.inspect()) return line.waiters.length
      return null
    }
    await expect.poll(waiters).toBe(1)
    leaving.abort()
    expect(await waiting).toBeNull()
    await expect.poll(waiters).toBe(0)
    await hold.release()
  })

  it('asks Redis as often for 100 viewers as for one', async () => {
    const redis = await startRedis()
    onTestFinished(() => redis.stop())
    const { url } = await serve(new Bench(), ['--store', redis.url])
    const locks = await Holdfast.open(redis.url)
    onTestFinished(() => locks.close({ drain: 0 }))
    await Promise.all(Array.from({ length: 50 }, (_, i) => locks.mutex(`r${i}`).acquire({ lease: '10m' })))
    const polls = async () =>
      Number(/holdfast_server_polls_total (\d+)/.exec(await (await fetch(`${url}/metrics`)).text())?.[1])
    const calls = async () => {
      const stats = await redis.cli('info', 'commandstats')
      const all = [...stats.matchAll(/cmdstat_(\S+):calls=(\d+)/g)]
      return all.reduce((sum, [, name, count]) => sum + (name === 'info' ? 0 : Number(count)), 0)
    }
    /** The commands of each look, with so many viewers. */
    const perLook = async (viewers: number): Promise<number> => {
      const leave = new AbortController()
      const open = () => fetch(`${url}/api/events`, { signal: leave.signal })
      const streams = await Promise.all(Array.from({ length: viewers }, open))
      const [looksBefore, callsBefore] = [await polls(), await calls()]
      await expect.poll(polls).toBeGreaterThan(looksBefore + 5)
      const [callsAfter, looksAfter] = [await calls(), await polls()]
      leave.abort()
      await Promise.all(streams.map((stream) => stream.body?.cancel().catch(() => {})))
      return (callsAfter - callsBefore) / (looksAfter - looksBefore)
    }
    const one = await perLook(1)
    const hundred = await perLook(100)
    console.log(`commands of Redis per look: ${one.toFixed(1)} for 1 viewer, ${hundred.toFixed(1)} for 100`)
    expect(hundred).toBeLessThan(one * 1.5)
  })

  it('shows a hold of another process soon', async () => {
    const redis = await startRedis()
    onTestFinished(() => redis.stop())
    const bench = new Bench()
    const { url } = await serve(bench, ['--store', redis.url])
    const locks = await Holdfast.open(redis.url)
    onTestFinished(() => locks.close({ drain: 0 }))
    const events = eventsOf(await fetch(`${url}/api/events`))
    await events.next()
    const times: number[] = []
    for (let i = 0; i < 5; i++) {
      const startedAt = performance.now()
      const hold = await locks.mutex(`a${i}`).acquire({ lease: '10m' })
      const namesOfNext = async () => {
        const { value } = await events.next()
        if (!value) throw new Error('the stream has ended')
        return (value.data as ResourceChanges).changed.map(({ name }) => name)
      }
      // A look may have found first that the last one is gone.
      const names = await namesOfNext()
      expect(names.length > 0 ? names : await namesOfNext()).toEqual([`a${i}`])
      times.push(performance.now() - startedAt)
      await hold.release()
    }
    await events.return()
    console.log(`a hold appears after ${times.map((ms) => Math.round(ms)).join(', ')} ms`)
  })
})
