import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Holdfast } from '../../src/index.js'
import { dashboard } from '../../src/server/index.js'
import { listen as listenOn } from '../../src/server/listen.js'
import { bridge } from '../../src/server/node.js'
import type { ResourceChanges } from '../../src/server/shapes.js'
import { memory } from '../../src/stores/memory/index.js'
import { describeOn } from '../servers/availability.js'
import { startRedis } from '../servers/redis.js'
import { eventsOf, listen, type ServerEvent, stageOf, stoppedClock, TOKEN } from './dashboards.js'

const headers = { authorization: `Bearer ${TOKEN}` }

/** The next event of that kind. */
async function next(events: AsyncGenerator<ServerEvent>, event: string): Promise<ServerEvent> {
  for (;;) {
    const { value, done } = await events.next()
    if (done) throw new Error(`the stream ended before ${event}`)
    if (value.event === event) return value
  }
}

describe('many streams', () => {
  it('1,000 of them all get a change, and one more than allowed gets 503', async () => {
    const { locks, view } = stageOf({ maxStreams: 1000 })
    const { url } = await listen(view.node)
    const open = () => fetch(`${url}/api/events`, { headers })
    const streams = await Promise.all(Array.from({ length: 1000 }, open))
    const readers = streams.map(eventsOf)
    for (const reader of readers) expect((await reader.next()).value).toMatchObject({ data: { isAll: true } })
    const refused = await open()
    expect(refused.status).toBe(503)
    expect(await refused.json()).toMatchObject({ code: 'TOO_MANY_STREAMS' })
    await locks.mutex('a').acquire()
    const events = await Promise.all(readers.map((reader) => next(reader, 'resources')))
    for (const { data } of events) expect(data).toMatchObject({ isAll: false, changed: [{ name: 'a' }] })
    await Promise.all(readers.slice(1).map((reader) => reader.return()))
    // A stream that was left makes room.
    await expect.poll(async () => (await open()).status).toBe(200)
  })

  it('ask the store as often as one does', async () => {
    const { view, get } = stageOf()
    const looks = async () => {
      const text = await (await get('metrics')).text()
      return Number(/holdfast_server_polls_total (\d+)/.exec(text)?.[1])
    }
    const startedAt = performance.now()
    const before = await looks()
    const streams = await Promise.all(Array.from({ length: 100 }, () => get('api/events')))
    const readers = streams.map(eventsOf)
    await Promise.all(readers.map((reader) => reader.next()))
    await expect.poll(looks).toBeGreaterThan(before + 2)
    const passedMs = performance.now() - startedAt
    expect(await looks()).toBeLessThanOrEqual(before + 4 + passedMs / 500)
    await view.close()
  })

  it('end with the dashboard', async () => {
    const { view, get } = stageOf()
    const events = eventsOf(await get('api/events'))
    await events.next()
    await view.close()
    expect(await events.next()).toEqual({ done: true, value: undefined })
  })
})

it('a reader that is too slow is skipped, and gets the whole when it has caught up', async () => {
  const { locks, get } = stageOf()
  const label = 'x'.repeat(1000)
  const many = async (): Promise<void> => {
    const holds = await Promise.all(
      Array.from({ length: 300 }, (_, i) => locks.mutex(`${i}`).acquire({ label })),
    )
    await Promise.all(holds.map((hold) => hold.release()))
  }
  const slow = eventsOf(await get('api/events'))
  expect((await slow.next()).value).toMatchObject({ data: { isAll: true } })
  // A stream that reads shows how far the poller is.
  const quick = eventsOf(await get('api/events'))
  const kept = await Promise.all(
    Array.from({ length: 300 }, (_, i) => locks.mutex(`kept ${i}`).acquire({ label })),
  )
  await next(quick, 'resources')
  for (let i = 0; i < 3; i++) {
    await many()
    await locks.mutex(`mark ${i}`).acquire({ label })
    await next(quick, 'resources')
  }
  const seen: ResourceChanges[] = []
  for await (const { data } of slow) {
    seen.push(data)
    if ((data as ResourceChanges).isAll) break
  }
  // A look may fall between two of the short holds, so the sum is not certain.
  expect(seen.at(-1)).toMatchObject({ isAll: true })
  expect(seen.at(-1)?.total).toBeGreaterThanOrEqual(303)
  expect(kept).toHaveLength(300)
  await quick.return()
})

it('a stream that watches a resource gets a large space once, with the resource', async () => {
  const { locks, get } = stageOf()
  const label = 'x'.repeat(1000)
  await Promise.all(
    Array.from({ length: 400 }, (_, i) => locks.mutex(`${i}`).acquire({ label, lease: '1h' })),
  )
  // Read anew just before, so that the stream gets the list before anybody reads it.
  await get('api/resources')
  const response = await get('api/events?resource=7')
  await get('api/resources')
  const seen: string[] = []
  for await (const { event, data } of eventsOf(response)) {
    if ((data as ResourceChanges).changed?.some(({ name }) => name === 'last')) break
    seen.push(event)
    if (seen.length > 9) break
    if (seen.length === 2) await locks.mutex('last').acquire({ lease: '1h' })
  }
  expect(seen).toEqual(['resources', 'resource'])
})

it('a stream that is not read for a minute is ended, and makes room', async () => {
  const { env, pass } = stoppedClock()
  const { locks, get } = stageOf({ maxStreams: 1 }, memory(), { env })
  const lease = '1h'
  const label = 'x'.repeat(1000)
  await Promise.all(Array.from({ length: 300 }, (_, i) => locks.mutex(`${i}`).acquire({ label, lease })))
  const stalled = await get('api/events')
  const statusOfNext = async () => {
    const response = await get('api/events')
    await response.body?.cancel()
    return response.status
  }
  let changes = 0
  await expect
    .poll(async () => {
      // Something new for each look: the first that finds it full begins the minute.
      await locks.mutex(`new ${changes++}`).acquire({ lease })
      pass(10_000)
      return statusOfNext()
    })
    .toBe(200)
  expect(changes).toBeGreaterThan(6)
  await expect(stalled.text()).rejects.toThrow(/not read/)
})

it('the bridge cuts a connection whose stream has failed, although it is not read', async () => {
  let isClosed = false
  let fail: () => void = () => {}
  let outgoing: ServerResponse | null = null
  const { port } = await listen((request, response) => {
    outgoing = response.once('close', () => {
      isClosed = true
    })
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(Buffer.alloc(32 * 1024 * 1024))
        fail = () => controller.error(new Error('not read'))
      },
    })
    void bridge(request, response, async () => new Response(body))
  })
  const socket = connect(port, '127.0.0.1').pause()
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => {}).write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await expect.poll(() => outgoing?.writableNeedDrain).toBe(true)
  fail()
  await expect.poll(() => isClosed).toBe(true)
})

it('the bridge writes no more after something else has ended the response', async () => {
  const errors: unknown[] = []
  let end: () => void = () => {}
  let bridged: Promise<void> | undefined
  const { url } = await listen((request, response) => {
    response.on('error', (error) => errors.push(error))
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        end = () => {
          response.end()
          controller.enqueue(Buffer.from('late'))
        }
      },
    })
    bridged = bridge(request, response, async () => new Response(body))
  })
  const answer = await fetch(url)
  end()
  expect(await answer.text()).toBe('')
  await bridged
  expect(errors).toEqual([])
})

it('a client that leaves a stream without a word is forgotten', async () => {
  const { view, get } = stageOf()
  const { port } = await listen(view.node)
  const socket = connect(port, '127.0.0.1')
  socket.write(`GET /api/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`)
  const streams = async () => /holdfast_server_streams (\d+)/.exec(await (await get('metrics')).text())?.[1]
  await expect.poll(streams).toBe('1')
  socket.destroy()
  await expect.poll(streams).toBe('0')
})

it('a server ends its connections, although a client of the store cannot be closed', async () => {
  const { view } = stageOf()
  const failing = { ...view, close: () => Promise.reject(new Error('the store is down')) }
  const { url, close } = await listenOn(failing, { host: '127.0.0.1', port: 0 })
  const response = await fetch(`${url}api/events`, { headers })
  await expect(close()).rejects.toThrow('the store is down')
  await expect(response.text()).rejects.toThrow()
})

describeOn('redis', 'while the store is down', () => {
  it('requests get a problem, streams are told, and all goes on afterwards', async () => {
    const server = await startRedis({ persistence: 'always' })
    onTestFinished(() => server.stop())
    const locks = await Holdfast.open(server.url, { storeTimeout: '6s' })
    const view = dashboard(locks, { token: TOKEN })
    onTestFinished(async () => {
      await view.close()
      await locks.close({ drain: 0 })
    })
    const get = (path: string) => view.fetch(new Request(`http://localhost/${path}`, { headers }))
    await locks.mutex('a').acquire({ lease: '10m' })
    const events = eventsOf(await get('api/events'))
    await next(events, 'resources')
    await server.kill()
    const { data } = await next(events, 'trouble')
    expect((data as { message: string }).message).not.toBe('')
    const list = await get('api/resources')
    expect(list.status).toBe(503)
    expect(await list.json()).toMatchObject({ code: 'STORE_UNAVAILABLE', status: 503 })
    expect((await get('')).status).toBe(200)
    expect((await get('healthz')).status).toBe(200)
    const ready = await get('readyz')
    expect(ready.status).toBe(503)
    expect(await ready.json()).toMatchObject({ status: 'unavailable', reason: expect.stringMatching(/./) })
    const stranger = await view.fetch(new Request('http://locks.example/readyz'))
    expect(await stranger.json()).toEqual({ status: 'unavailable' })
    expect(await (await get('metrics')).text()).toMatch(/holdfast_store_up 0\n/)
    // A stream that begins now is told, too.
    const late = eventsOf(await get('api/events'))
    await next(late, 'trouble')
    await server.restart({ keepData: true })
    await next(events, 'fine')
    await next(late, 'fine')
    expect(await next(late, 'resources')).toMatchObject({ data: { isAll: true, changed: [{ name: 'a' }] } })
    await expect.poll(async () => (await get('readyz')).status).toBe(200)
    await Promise.all([events.return(), late.return()])
  })
})
