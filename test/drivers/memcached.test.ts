import { writeFileSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { systemEnv } from '../../src/base/env.js'
import { chooseServer, MemcachedServer, parseMemcachedServers } from '../../src/drivers/memcached/index.js'
import { ReplyReader } from '../../src/drivers/memcached/replies.js'
import { describeOn } from '../servers/availability.js'
import { type MemcachedProcess, startMemcached } from '../servers/memcached.js'
import { TcpProxy } from '../servers/proxy.js'

function clientOf(port: number, options: { timeoutMs?: number; onLoss?: () => void } = {}): MemcachedServer {
  const client = new MemcachedServer({ host: '127.0.0.1', port, env: systemEnv, timeoutMs: 5000, ...options })
  onTestFinished(() => client.close())
  return client
}

describe('the replies of memcached', () => {
  it.each([1, 2, 3, 7, 1000])('are read from pieces of %i bytes', (size) => {
    const text = Buffer.from('HD c12\r\nVA 5 c7 t30\r\nä\r\nx\r\nEN\r\nSERVER_ERROR out of memory\r\n')
    const reader = new ReplyReader()
    const replies: unknown[] = []
    for (let at = 0; at < text.length; at += size) {
      reader.add(text.subarray(at, at + size))
      for (let reply = reader.next('meta'); reply; reply = reader.next('meta')) replies.push(reply)
    }
    expect(replies).toEqual([
      { status: 'HD', cas: 12, value: '' },
      { status: 'VA', cas: 7, value: 'ä\r\nx' },
      { status: 'EN', cas: 0, value: '' },
      { failure: 'SERVER_ERROR out of memory' },
    ])
  })
})

describe('the servers of memcached', () => {
  it('are parsed, with a default port and IPv6', () => {
    expect(parseMemcachedServers('a,b:1, [::1]:2')).toEqual([
      { host: 'a', port: 11211 },
      { host: 'b', port: 1 },
      { host: '::1', port: 2 },
    ])
    for (const wrong of ['', 'a,', 'a:0', 'a:b', 'a:1,a:1', 'u@h']) {
      expect(() => parseMemcachedServers(wrong), wrong).toThrow(/server/)
    }
  })

  it('share the keys evenly, in any order, and keep theirs when one leaves', () => {
    const names = ['a:1', 'b:1', 'c:1']
    const keys = Array.from({ length: 3000 }, (_, index) => `key-${index}`)
    const ownerIn = (list: string[], key: string): string => list[chooseServer(list, key)] ?? ''
    for (const name of names) {
      const share = keys.filter((key) => ownerIn(names, key) === name).length
      expect(share).toBeGreaterThan(850)
    }
    for (const key of keys) {
      const owner = ownerIn(names, key)
      expect(ownerIn(['c:1', 'a:1', 'b:1'], key)).toBe(owner)
      if (owner !== 'b:1') expect(ownerIn(['a:1', 'c:1'], key)).toBe(owner)
    }
  })
})

describeOn('memcached', 'the client of memcached', () => {
  let server: MemcachedProcess
  beforeAll(async () => {
    server = await startMemcached()
  })
  afterAll(() => server.stop())

  it('answers pipelined commands in order', async () => {
    const client = clientOf(server.port)
    const sets = Array.from({ length: 500 }, (_, n) =>
      client.meta(`ms p${n} ${String(n).length} c\r\n${n}\r\n`),
    )
    const gets = Array.from({ length: 500 }, (_, n) => client.meta(`mg p${n} v\r\n`))
    expect((await Promise.all(sets)).every(({ status, cas }) => status === 'HD' && cas > 0)).toBe(true)
    expect((await Promise.all(gets)).map(({ value }) => value)).toEqual(gets.map((_, n) => String(n)))
    expect((await client.stats('settings')).get('cas_enabled')).toBe('yes')
    expect(await client.keys()).toContain('p499')
  })

  it('compares before it sets: the rules that the store stands on', async () => {
    const client = clientOf(server.port)
    const statusOf = async (command: string): Promise<string> => (await client.meta(command)).status
    expect(await statusOf('ms rule 1 ME c\r\na\r\n')).toBe('HD')
    expect(await statusOf('ms rule 1 ME c\r\nb\r\n')).toBe('NS')
    const { cas } = await client.meta('mg rule c\r\n')
    expect(await statusOf(`ms rule 1 C${cas + 1000} c\r\nb\r\n`)).toBe('EX')
    expect(await statusOf(`ms rule 1 C${cas} c\r\nc\r\n`)).toBe('HD')
    expect(await statusOf(`ms other-rule 1 C${cas} c\r\nc\r\n`)).toBe('NF')
    expect((await client.meta('mg rule v\r\n')).value).toBe('c')
  })

  it('drops an item that grows too large: the store must not send it', async () => {
    const client = clientOf(server.port)
    await client.meta('ms big 1\r\na\r\n')
    const large = 'x'.repeat(2_000_000)
    await expect(client.meta(`ms big ${large.length}\r\n${large}\r\n`)).rejects.toThrow(/too large/)
    expect((await client.meta('mg big v\r\n')).status).toBe('EN')
  })

  it('lists the keys although another application has one that is no UTF-8', async () => {
    const client = clientOf(server.port)
    await client.meta('ms k\u00e4se 1\r\na\r\n')
    await client.meta('ms bread 1\r\na\r\n')
    expect(await client.keys()).toContain('bread')
  })

  it('ends the connection after a command that the server does not understand', async () => {
    let losses = 0
    const client = clientOf(server.port, { onLoss: () => losses++ })
    const wrong = client.meta('nonsense\r\n')
    const behind = client.meta('mn\r\n')
    await expect(wrong).rejects.toMatchObject({ code: 'REFUSED' })
    await expect(behind).rejects.toMatchObject({ code: 'REFUSED' })
    expect(losses).toBe(1)
    expect((await client.meta('mn\r\n')).status).toBe('MN')
  })

  it('has another connection for a listener that sends again when one is lost', async () => {
    const client = clientOf(server.port)
    const sendAgainAfter = (command: string): Promise<unknown> =>
      new Promise((resolve) => {
        const reject = (): void => resolve(client.meta('mn\r\n'))
        client.send(command, { kind: 'meta', resolve, reject })
      })
    const misunderstood = sendAgainAfter('nonsense\r\n')
    const behind = sendAgainAfter('mn\r\n')
    expect(await misunderstood).toMatchObject({ status: 'MN' })
    expect(await behind).toMatchObject({ status: 'MN' })
  })

  it('fails what is not answered in time, and connects again', async () => {
    const proxy = await TcpProxy.start(server.port)
    onTestFinished(() => proxy.stop())
    const client = clientOf(proxy.port, { timeoutMs: 200 })
    await client.meta('mn\r\n')
    proxy.mode = 'stall'
    await expect(client.meta('mn\r\n')).rejects.toThrow(/no answer within 200 ms/)
    proxy.mode = 'pass'
    await expect
      .poll(() =>
        client.meta('mn\r\n').then(
          ({ status }) => status,
          () => '',
        ),
      )
      .toBe('MN')
    proxy.mode = 'refuse'
    await expect(client.meta('mn\r\n')).rejects.toMatchObject({ code: 'UNREACHABLE' })
    proxy.mode = 'pass'
    expect((await client.meta('mn\r\n')).status).toBe('MN')
  })

  it('fails the commands under way when it is closed', async () => {
    const client = clientOf(server.port)
    const under = client.meta('mn\r\n')
    client.close()
    await expect(under).rejects.toMatchObject({ code: 'CLOSED' })
    await expect(client.meta('mn\r\n')).rejects.toMatchObject({ code: 'CLOSED' })
    await expect(client.keys()).rejects.toMatchObject({ code: 'CLOSED' })
  })

  it('logs in where the server asks for it', async () => {
    const file = join(tmpdir(), `holdfast-login-${process.pid}`)
    writeFileSync(file, 'app:sécret\n')
    const login = { user: 'app', password: 'sécret' }
    const guarded = await startMemcached({ args: ['-Y', file], login })
    onTestFinished(() => guarded.stop())
    // A server that has just started may be busy with a walk of its own.
    await expect.poll(() => guarded.keys().catch(() => null)).toEqual([])
    await expect(clientOf(guarded.port).meta('mn\r\n')).rejects.toThrow(/unauthenticated/)
    const wrong = new MemcachedServer({
      host: '127.0.0.1',
      port: guarded.port,
      env: systemEnv,
      timeoutMs: 5000,
      login: { user: 'app', password: 'wrong' },
    })
    onTestFinished(() => wrong.close())
    await expect(wrong.meta('mn\r\n')).rejects.toThrow(/authenti/)
  })

  it('leaves a connection on which the length of a value cannot be read', async () => {
    let connections = 0
    const port = await portOf((socket) => {
      const reply = connections++ === 0 ? 'VA x c1\r\n' : 'EN\r\n'
      socket.on('error', () => {}).on('data', () => socket.write(reply))
    })
    const client = clientOf(port)
    await expect(client.meta('mg a c v\r\n')).rejects.toMatchObject({ code: 'REFUSED' })
    expect((await client.meta('mg a c v\r\n')).status).toBe('EN')
  })

  it('says who does not answer', async () => {
    const closed = await refusingPort()
    await expect(clientOf(closed).meta('mn\r\n')).rejects.toThrow(`127.0.0.1:${closed}`)
  })
})

/** A port whose connections end at once. */
function refusingPort(): Promise<number> {
  return portOf((socket) => socket.destroy())
}

/** A port with that server for each connection. */
async function portOf(serve: (socket: Socket) => void): Promise<number> {
  const listener: Server = createServer(serve).listen(0, '127.0.0.1')
  onTestFinished(() => void listener.close())
  await new Promise((resolve) => listener.once('listening', resolve))
  const address = listener.address()
  return typeof address === 'object' && address ? address.port : 0
}
