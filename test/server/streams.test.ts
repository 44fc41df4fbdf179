import { connect } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Holdfast } from '../../src/index.js'
import { dashboard } from '../../src/server/index.js'
import type { ResourceChanges } from '../../src/server/shapes.js'
import { describeOn } from '../servers/availability.js'
import { startRedis } from '../servers/redis.js'
import { eventsOf, listen, type ServerEvent, stageOf, TOKEN } from './dashboards.js'

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
    const before = await looks()
    const streams = await Promise.all(Array.from({ length: 100 }, () => get('api/events')))
    const readers = streams.map(eventsOf)
    await Promise.all(readers.map((reader) => reader.next()))
    const startedAt = performance.now()
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
  expect(seen.at(-1)).toMatchObject({ isAll: true, total: 303 })
  expect(kept).toHaveLength(300)
  await quick.return()
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
