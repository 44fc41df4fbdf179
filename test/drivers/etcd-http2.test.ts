import type http2 from 'node:http2'
import { constants } from 'node:http2'
import { afterEach, describe, expect, it } from 'vitest'
import { EtcdClient, type EtcdError, type EtcdOptions } from '../../src/drivers/etcd/index.js'
import { eventually } from '../../src/testing/conformance/checks.js'
import { answer, GrpcServer } from './etcd/grpc-server.js'

const endings: (() => unknown)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end()
})

async function start(options?: Parameters<typeof GrpcServer.start>[0]): Promise<GrpcServer> {
  const server = await GrpcServer.start(options)
  endings.push(() => server.stop())
  return server
}

function client(address: string, options: EtcdOptions = {}): EtcdClient {
  const made = new EtcdClient(address, { requestTimeout: '30s', stallTimeout: '30s', ...options })
  endings.push(() => made.close())
  return made
}

/** Of a call that must fail. */
async function failureOf(call: Promise<unknown>): Promise<EtcdError> {
  return call.then(
    () => expect.fail('it did not fail'),
    (error: EtcdError) => error,
  )
}

describe("the client for etcd at a server of Node's for HTTP/2", () => {
  it('reads headers of several frames, and with every character', async () => {
    const server = await start()
    const text = Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index)).join('')
    // Long enough for three frames, and so that its Huffman codes are the shorter form.
    const long = `${text.replace('%', '')}${'a'.repeat(200)}${'0123456789abcdef'.repeat(2500)}.`
    server.handler = (stream) =>
      answer(stream, Buffer.alloc(0), { 'grpc-status': '3', 'grpc-message': long.trimStart() })
    const error = await failureOf(client(server.address).get('a'))
    expect(error.message).toBe(long.trimStart())
  })

  it('takes padding out', async () => {
    const server = await start({ paddingStrategy: constants.PADDING_STRATEGY_MAX })
    // A header with revision 7. Padding that is left would be read as further, empty messages.
    server.handler = (stream) => answer(stream, Buffer.from([0x0a, 2, 0x18, 7]))
    const etcd = client(server.address)
    for (let count = 0; count < 300; count++) expect(await etcd.put('a', '')).toBe(7)
  })

  it('needs no table, also at a server that has none', async () => {
    const server = await start({ settings: { headerTableSize: 0 } })
    const etcd = client(server.address)
    for (let count = 0; count < 3; count++) expect(await etcd.get('a')).toBe(null)
    expect(server.sessions).toHaveLength(1)
  })

  it('sends a long request through small windows', async () => {
    const server = await start({ settings: { initialWindowSize: 1000 } })
    const lengths: number[] = []
    server.handler = (stream, request) => {
      lengths.push(request.length)
      answer(stream)
    }
    const etcd = client(server.address)
    const value = Buffer.alloc(300_000, 'x')
    await Promise.all(Array.from({ length: 4 }, () => etcd.put('a', value)))
    expect(lengths).toHaveLength(4)
    for (const length of lengths) expect(length).toBeGreaterThan(value.length)
  })

  it('goes on when the server changes its windows meanwhile', async () => {
    const server = await start({ settings: { initialWindowSize: 0 } })
    const etcd = client(server.address)
    const written = etcd.put('a', Buffer.alloc(100_000))
    await eventually('the call', () => server.sessions.length === 1)
    for (const initialWindowSize of [10, 5, 0, 70_000])
      await new Promise<void>((resolve) =>
        server.sessions[0]?.settings({ initialWindowSize }, () => resolve()),
      )
    await written
  })

  it('reads more than its window, in one answer and in many', async () => {
    const server = await start()
    // A field that the client does not know.
    const message = Buffer.concat([Buffer.from([0x7a, 0x80, 0x80, 0x80, 0x0a]), Buffer.alloc(10 * 2 ** 21)])
    server.handler = (stream) => answer(stream, message)
    const etcd = client(server.address)
    for (let count = 0; count < 2; count++) await etcd.get('a')
    server.handler = (stream) => answer(stream, message.subarray(0, 0))
    expect(await etcd.get('a')).toBe(null)
    expect(server.sessions).toHaveLength(1)
  })

  it('opens no more calls at once than the server allows', async () => {
    const server = await start({ settings: { maxConcurrentStreams: 2 } })
    let [open, most] = [0, 0]
    server.handler = (stream) => {
      most = Math.max(most, ++open)
      setImmediate(() => {
        open--
        answer(stream)
      })
    }
    const etcd = client(server.address)
    await etcd.get('a')
    await Promise.all(Array.from({ length: 40 }, () => etcd.get('a')))
    expect(most).toBe(2)
  })

  it('ends a call before it opens the one that waited for its place', async () => {
    const server = await start({ settings: { maxConcurrentStreams: 1 } })
    const etcd = client(server.address)
    await etcd.get('a')
    const isWatched = new Promise<void>((resolve) => {
      server.onOpen = (_, path) => {
        if (path.endsWith('/Watch')) resolve()
      }
    })
    const stop = etcd.watch({ key: 'a', from: 1, onEvents: () => {}, onCompacted: () => {} })
    await isWatched
    const waiting = etcd.get('a')
    stop()
    expect(await waiting).toBe(null)
    expect(server.sessions).toHaveLength(1)
  })

  it('sends again what the server has surely not looked at when it ends the connection', async () => {
    const server = await start()
    const seen: string[] = []
    const hold = (stream: http2.ServerHttp2Stream, request: Buffer): void => {
      seen.push(`${server.sessions.length}:${request.includes('first') ? 'first' : 'later'}`)
      // The first call is under way, of the others it says that it will not touch them.
      if (server.sessions.length === 1 && seen.length === 3) server.sessions[0]?.goaway(0, 3)
      if (server.sessions.length > 1) answer(stream)
    }
    const etcd = client(server.address)
    await etcd.get('a')
    server.handler = hold
    const calls = [etcd.put('first', ''), etcd.put('later', ''), etcd.put('later', '')]
    const results = await Promise.allSettled(calls)
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled'])
    expect((results[0] as PromiseRejectedResult).reason).toMatchObject({
      code: 'UNAVAILABLE',
      maybeDone: true,
    })
    expect(seen.sort()).toEqual(['1:first', '1:later', '1:later', '2:later', '2:later'])
  })

  it('tells what is known of a call that the server resets', async () => {
    const server = await start()
    const etcd = client(server.address)
    const codes = [constants.NGHTTP2_REFUSED_STREAM, constants.NGHTTP2_INTERNAL_ERROR]
    const errors: EtcdError[] = []
    for (const code of codes) {
      server.handler = (stream) => stream.close(code)
      errors.push(await failureOf(etcd.get('a')))
    }
    expect(errors.map(({ code, maybeDone }) => [code, maybeDone])).toEqual([
      ['UNAVAILABLE', false],
      ['UNAVAILABLE', true],
    ])
    expect(errors.map(({ message }) => message.replace(/.* reset/, 'reset'))).toEqual([
      'reset the call (REFUSED_STREAM)',
      'reset the call (INTERNAL_ERROR)',
    ])
    server.handler = (stream) => answer(stream)
    await etcd.get('a')
    expect(server.sessions).toHaveLength(1)
  })

  it('says so when something else than etcd answers', async () => {
    const server = await start()
    server.handler = (stream) => {
      stream.respond({ ':status': 502, 'content-type': 'text/html' })
      stream.end('<html>Bad gateway</html>')
    }
    const error = await failureOf(client(server.address).get('a'))
    expect(error.message).toContain('answered with the HTTP status 502')
    server.handler = (stream) => {
      stream.respond({ ':status': 200 })
      stream.end()
    }
    expect((await failureOf(client(server.address).get('a'))).message).toContain('without an answer')
  })

  it('lets a cancelled call go, and answers pings', async () => {
    const server = await start()
    let closed = 0
    server.handler = (stream) => {
      stream.on('close', () => closed++)
      server.handler = (next) => answer(next)
    }
    const etcd = client(server.address, { requestTimeout: '300ms' })
    const cancelled = etcd.get('a')
    // The server is not left, as it answers others.
    await Promise.all([expect(cancelled).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' }), etcd.get('b')])
    expect(server.sessions).toHaveLength(1)
    await eventually('the end of the call at the server', () => closed === 1)
    const payload = Buffer.from('12345678')
    const ponged = await new Promise<Buffer>((resolve, reject) =>
      server.sessions[0]?.ping(payload, (error, _, received) => (error ? reject(error) : resolve(received))),
    )
    expect(ponged).toEqual(payload)
  })

  it('keeps a watch whose events are more than its window', async () => {
    const server = await start()
    const etcd = client(server.address)
    let events = 0
    const count = 200
    server.handler = () => {}
    // The watch never ends its request, so it is answered as soon as it comes.
    const stream = new Promise<http2.ServerHttp2Stream>((resolve) => {
      server.onOpen = (opened, path) => {
        if (path.endsWith('/Watch')) resolve(opened)
      }
    })
    etcd.watch({ key: 'a', from: 1, onEvents: () => events++, onCompacted: () => {} })
    const opened = await stream
    opened.respond({ ':status': 200 })
    for (let number = 0; number < count; number++) opened.write(watchEvent(100_000))
    await eventually('all events', () => events === count)
  })
})

/** An answer of the watch with number 1: one event of so many bytes, with its length before it. */
function watchEvent(bytes: number): Buffer {
  const value = delimited(5, Buffer.alloc(bytes))
  const event = delimited(11, delimited(2, Buffer.concat([delimited(1, Buffer.from('a')), value])))
  const message = Buffer.concat([Buffer.from([0x10, 1]), event])
  const header = Buffer.alloc(5)
  header.writeUInt32BE(message.length, 1)
  return Buffer.concat([header, message])
}

function delimited(field: number, bytes: Buffer): Buffer {
  const length: number[] = []
  let rest = bytes.length
  for (; rest >= 0x80; rest >>= 7) length.push((rest & 0x7f) | 0x80)
  return Buffer.concat([Buffer.from([(field << 3) | 2, ...length, rest]), bytes])
}
