import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { type Env, systemEnv } from '../../src/base/env.js'
import { EtcdClient, EtcdError, type EtcdOptions } from '../../src/drivers/etcd/index.js'
import { eventually } from '../../src/testing/conformance/checks.js'
import { EMPTY_SETTINGS, FrameServer, rawAnswer, rawFrame } from './etcd/frame-server.js'

const [DATA, HEADERS, PRIORITY, RESET, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION] = [
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
] as const
const ROUNDS = 150

const endings: (() => unknown)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end()
})

async function start(): Promise<FrameServer> {
  const server = await FrameServer.start()
  endings.push(() => server.stop())
  return server
}

function client(address: string, options: EtcdOptions = {}): EtcdClient {
  const made = new EtcdClient(address, { requestTimeout: '30s', stallTimeout: '30s', ...options })
  endings.push(() => made.close())
  return made
}

function uint32(...numbers: number[]): Buffer {
  const bytes = Buffer.alloc(numbers.length * 4)
  for (const [index, number] of numbers.entries()) bytes.writeUInt32BE(number, index * 4)
  return bytes
}

function setting(id: number, value: number): Buffer {
  return Buffer.concat([Buffer.from([0, id]), uint32(value)])
}

/** A clock that stands still, and what lets time pass. */
function manualClock(): { env: Env; pass(ms: number): void } {
  let nowMs = 0
  const timers = new Set<{ dueAt: number; run: () => void }>()
  const startTimer: Env['timer'] = (ms, run) => {
    const timer = { dueAt: nowMs + ms, run }
    timers.add(timer)
    return () => timers.delete(timer)
  }
  return {
    env: { ...systemEnv, now: () => nowMs, timer: startTimer },
    pass(ms) {
      nowMs += ms
      for (const timer of [...timers]) if (timer.dueAt <= nowMs && timers.delete(timer)) timer.run()
    },
  }
}

/** Answers each call with these bytes, on the first connection. The later ones are served well. */
function answerFirst(server: FrameServer, bytesOf: (streamId: number) => Buffer): void {
  server.onFrame = ({ type, flags, streamId }, socket) => {
    if (type === SETTINGS && !(flags & 1)) socket.write(EMPTY_SETTINGS)
    if (type === DATA) socket.write(server.connections === 1 ? bytesOf(streamId) : rawAnswer(streamId))
  }
}

describe('the client for etcd at a server that sends', () => {
  it.each<[string, (id: number) => Buffer, string]>([
    ['a frame that is too large', () => rawFrame(DATA, 0, 1, Buffer.alloc(16_385)), 'too large'],
    ['data without a stream', () => rawFrame(DATA, 0, 0), 'no stream 0'],
    ['data for a stream that was not opened', () => rawFrame(DATA, 0, 99), 'no stream 99'],
    ['headers for a stream of its own', () => rawFrame(HEADERS, 4, 2, Buffer.from([0x88])), 'no stream 2'],
    ['a push', (id) => rawFrame(PUSH, 4, id, uint32(2)), 'pushes'],
    ['more padding than bytes', (id) => rawFrame(DATA, 8, id, Buffer.from([5, 0, 0])), 'padding'],
    ['padding without its length', (id) => rawFrame(HEADERS, 12, id), 'padding'],
    ['headers that are shorter than their priority', (id) => rawFrame(HEADERS, 0x24, id), 'cut off'],
    [
      'headers of a table that we do not have',
      (id) => rawFrame(HEADERS, 4, id, Buffer.from([0xbe])),
      'number 62',
    ],
    [
      'another frame between those of headers',
      (id) => Buffer.concat([rawFrame(HEADERS, 0, id), rawFrame(PING, 0, 0, Buffer.alloc(8))]),
      'interrupted',
    ],
    ['the end of headers without a beginning', (id) => rawFrame(CONTINUATION, 4, id), 'interrupted'],
    [
      'headers without end',
      (id) => Buffer.concat([rawFrame(HEADERS, 0, id), ...Array(99).fill(rawFrame(CONTINUATION, 0, id))]),
      'more than 8 frames',
    ],
    ['settings that are cut off', () => rawFrame(SETTINGS, 0, 0, Buffer.alloc(5)), 'cut off'],
    ['settings for a stream', (id) => rawFrame(SETTINGS, 0, id), 'no stream'],
    ['a window that is too large', () => rawFrame(SETTINGS, 0, 0, setting(4, 2 ** 31)), 'window'],
    ['a frame size that is too small', () => rawFrame(SETTINGS, 0, 0, setting(5, 100)), 'Frames of 100'],
    ['a ping that is cut off', () => rawFrame(PING, 0, 0, Buffer.alloc(7)), 'ping is cut off'],
    ['a window that grows by nothing', () => rawFrame(WINDOW, 0, 0, uint32(0)), 'nothing'],
    ['a window that grows too far', (id) => rawFrame(WINDOW, 0, id, uint32(2 ** 31 - 1)), 'window of'],
    ['a reset that is cut off', (id) => rawFrame(RESET, 0, id, Buffer.alloc(3)), 'cut off'],
    ['an end that is cut off', () => rawFrame(GOAWAY, 0, 0, Buffer.alloc(7)), 'cut off'],
    ['a compressed message', (id) => rawFrame(DATA, 0, id, Buffer.from([1, 0, 0, 0, 0])), 'compressed'],
    ['a message of gigabytes', (id) => rawFrame(DATA, 0, id, Buffer.from([0, 255, 0, 0, 0])), 'too large'],
  ])('%s leaves it, and says why', async (_, bytesOf, text) => {
    const server = await start()
    answerFirst(server, bytesOf)
    const etcd = client(server.address)
    const error: unknown = await etcd.get('a').catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'UNAVAILABLE', maybeDone: true })
    expect(String(error)).toContain(text)
    expect(await etcd.get('a')).toBe(null)
    // The server is told, too.
    expect(server.frames.some(({ type }) => type === GOAWAY)).toBe(true)
  })

  it('what has to be passed over passes over it', async () => {
    const server = await start()
    answerFirst(server, (id) =>
      Buffer.concat([
        rawFrame(0x42, 255, 0, Buffer.from('of a later version')),
        rawFrame(PRIORITY, 0, id, Buffer.alloc(5)),
        rawFrame(SETTINGS, 0, 0, setting(0x99, 1)),
        rawFrame(HEADERS, 4, id, Buffer.from([0x48, 3, ...Buffer.from('100')])),
        rawFrame(HEADERS, 4 | 8 | 0x20, id, Buffer.from([2, 0, 0, 0, 0, 0, 0x88, 0, 0])),
        rawFrame(DATA, 8, id, Buffer.from([0])),
        rawFrame(DATA, 0, id),
        rawAnswer(id),
        // Its stream has ended.
        rawFrame(WINDOW, 0, id, uint32(10)),
        rawFrame(RESET, 0, id, uint32(0)),
        rawFrame(DATA, 0, id, Buffer.alloc(100)),
      ]),
    )
    const etcd = client(server.address)
    expect([await etcd.get('a'), await etcd.get('a')]).toEqual([null, null])
    expect(server.connections).toBe(1)
  })

  it('one byte after the other is understood', async () => {
    const server = await start()
    server.onFrame = ({ type, flags, streamId }, socket) => {
      const bytes = type === SETTINGS && !(flags & 1) ? EMPTY_SETTINGS : rawAnswer(streamId)
      if (type === DATA || (type === SETTINGS && !(flags & 1)))
        for (const byte of bytes) socket.write(Buffer.of(byte))
    }
    expect(await client(server.address).get('a')).toBe(null)
  })

  it.each([
    ['answers pings and no requests leaves it', {}],
    ['answers pings and checks no password leaves it', { username: 'app', password: 'secret' }],
  ])('%s', async (_, user) => {
    const server = await start()
    server.onFrame = ({ type, flags, streamId, payload }, socket) => {
      if (type === SETTINGS && !(flags & 1)) socket.write(EMPTY_SETTINGS)
      if (type === PING && !(flags & 1)) socket.write(rawFrame(PING, 1, 0, payload))
      if (type === DATA && server.connections > 1) socket.write(rawAnswer(streamId))
    }
    const etcd = client(server.address, { requestTimeout: '200ms', ...user })
    await expect(etcd.get('a')).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    await eventually('an answer', () =>
      etcd.get('a').then(
        () => true,
        () => false,
      ),
    )
    expect(server.connections).toBeGreaterThan(1)
  })

  it('nothing to a call that was sent just before its deadline keeps it', async () => {
    const server = await start()
    const { env, pass } = manualClock()
    let begin = (): void => {}
    let isAnswering = false
    server.onFrame = ({ type, flags, streamId }, socket) => {
      if (type === SETTINGS && !(flags & 1)) begin = () => socket.write(EMPTY_SETTINGS)
      if (type === DATA && isAnswering) socket.write(rawAnswer(streamId))
    }
    const etcd = client(server.address, { env, requestTimeout: '1s' })
    const late = etcd.get('a')
    late.catch(() => {})
    await eventually('the connection', () => server.frames.length > 0)
    pass(900)
    begin()
    await eventually('the call', () => server.frames.some(({ type }) => type === DATA))
    pass(100)
    await expect(late).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED', maybeDone: true })
    expect(etcd.trouble).toBe(null)
    isAnswering = true
    expect(await etcd.get('b')).toBe(null)
    expect(server.connections).toBe(1)
  })

  it('pings without end and reads no answer leaves it', async () => {
    const server = await start()
    const pings = Buffer.concat(Array<Buffer>(10_000).fill(rawFrame(PING, 0, 0, Buffer.alloc(8))))
    let isOver = false
    server.onFrame = ({ type, flags }, socket) => {
      if (type !== SETTINGS || flags & 1) return
      socket.write(EMPTY_SETTINGS)
      socket.pause()
      socket.on('close', () => {
        isOver = true
      })
      const flood = (): void => {
        if (!isOver) socket.write(pings, flood)
      }
      flood()
    }
    const error: unknown = await client(server.address)
      .get('a')
      .catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'UNAVAILABLE' })
    isOver = true
  })
})

describe('the client for etcd at what is no server for HTTP/2', () => {
  it.each([
    ['a web server', 'HTTP/1.1 400 Bad Request\r\n\r\n', 'it began with "HTTP/1.1 400'],
    // Shorter than the header of a frame.
    ['a server that speaks TLS', '\x15\x03\x01\x00\x02\x02\x46', 'it asks for TLS'],
    ['a server that speaks first', '\x00\x00\x00\x08\x00\x00\x00\x00\x00', 'it began with'],
  ])('says that it found %s', async (_, bytes, text) => {
    const other = createServer((socket) => socket.on('error', () => {}).end(bytes, 'latin1'))
    other.listen(0, '127.0.0.1')
    await once(other, 'listening')
    endings.push(() => other.close())
    const etcd = client(`127.0.0.1:${(other.address() as AddressInfo).port}`, { requestTimeout: '2s' })
    const error = await etcd.get('a').catch((reason: Error) => reason)
    expect(String(error)).toContain(`This is not HTTP/2: ${text}`)
  })
})

describe('many calls', () => {
  it('of one turn of the event loop leave in one piece, and answers to pings a little later', async () => {
    const server = await start()
    const open: number[] = []
    server.onFrame = ({ type, flags, streamId }, socket) => {
      if (type === SETTINGS && !(flags & 1)) socket.write(EMPTY_SETTINGS)
      if (type !== DATA) return
      open.push(streamId)
      if (open.length === 1 || open.length === 51)
        socket.write(Buffer.concat([rawFrame(PING, 0, 0, Buffer.alloc(8)), ...open.map(rawAnswer)]))
    }
    const etcd = client(server.address)
    const pings = (): number => server.frames.filter(({ type }) => type === PING).length
    await etcd.get('a')
    await eventually('the first answer to a ping', () => pings() === 1)
    const before = server.chunks.length
    await Promise.all(Array.from({ length: 50 }, () => etcd.get('a')))
    await eventually('the second one', () => pings() === 2)
    // The requests, and the second answer.
    expect(server.chunks.length - before).toBeLessThanOrEqual(2)
  })
})

describe('bytes that are changed at random', () => {
  it('end in an answer or an error of the client, and the next connection serves', async () => {
    const server = await start()
    let seed = 7
    const random = (below: number): number => {
      seed = (seed * 48_271) % 2_147_483_647
      return seed % below
    }
    const disturbed = (bytes: Buffer): Buffer => {
      const changed = Buffer.from(bytes)
      for (let count = random(4); count >= 0; count--) changed[random(changed.length)] = random(256)
      return random(3) === 0 ? changed.subarray(0, random(changed.length)) : changed
    }
    let isDisturbing = true
    server.onFrame = ({ type, flags, streamId }, socket) => {
      const isStart = type === SETTINGS && !(flags & 1)
      if (!isStart && type !== DATA) return
      const settings = Buffer.concat([setting(3, 100), setting(4, 65_535), setting(5, 16_384)])
      const bytes = isStart ? rawFrame(SETTINGS, 0, 0, settings) : rawAnswer(streamId)
      socket.write(isDisturbing && (!isStart || random(4) === 0) ? disturbed(bytes) : bytes)
    }
    const results: unknown[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const etcd = new EtcdClient(server.address, { requestTimeout: '40ms', stallTimeout: '20ms' })
      const calls = Array.from({ length: 3 }, () => etcd.get('a').catch((error: unknown) => error))
      results.push(...(await Promise.all(calls)))
      await etcd.close()
    }
    const odd = results.filter((result) => result !== null && !(result instanceof EtcdError))
    // Bytes of a message may be changed so that they say something else.
    expect(odd.filter((result) => !(result instanceof RangeError))).toEqual([])
    isDisturbing = false
    expect(await client(server.address).get('a')).toBe(null)
  })
})
