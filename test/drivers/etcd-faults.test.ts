import { execFileSync } from 'node:child_process'
import http2 from 'node:http2'
import { syncBuiltinESMExports } from 'node:module'
import { afterEach, expect, it } from 'vitest'
import { EtcdClient, EtcdError, type EtcdOptions } from '../../src/drivers/etcd/index.js'
import { eventually, now } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { type EtcdCluster, type EtcdServer, startEtcd, startEtcdCluster } from '../servers/etcd.js'
import { TcpProxy } from '../servers/proxy.js'

/** Checking a password takes the servers long. */
const APP = { username: 'app', password: 'secret', requestTimeout: '20s', stallTimeout: '20s' } as const
const endings: (() => unknown)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end()
})

async function start(): Promise<EtcdServer> {
  const server = await startEtcd()
  endings.push(() => server.stop())
  return server
}

async function cluster(): Promise<EtcdCluster> {
  const servers = await startEtcdCluster()
  endings.push(() => servers.stop())
  return servers
}

function client(address: string, options?: EtcdOptions): EtcdClient {
  const made = new EtcdClient(address, options)
  endings.push(() => made.close())
  return made
}

/** Users are known, and `app` may use the keys below `a/`; nobody is asked yet. */
async function addUsers(server: EtcdServer): Promise<void> {
  await server.ctl('user', 'add', 'root:secret')
  await server.ctl('user', 'grant-role', 'root', 'root')
  await server.ctl('role', 'add', 'some')
  await server.ctl('role', 'grant-permission', 'some', '--prefix=true', 'readwrite', 'a/')
  await server.ctl('user', 'add', 'app:secret')
  await server.ctl('user', 'grant-role', 'app', 'some')
}

/** The keys that a watch tells of. */
function watched(etcd: EtcdClient, key: string, from: number): string[] {
  const seen: string[] = []
  const onEvents = (events: readonly { kv: { key: string } }[]) =>
    seen.push(...events.map(({ kv }) => kv.key))
  etcd.watch({ key, from, onEvents, onCompacted: () => seen.push('compacted') })
  return seen
}

interface Failure {
  readonly key: string
  readonly error: unknown
}

/** Those that are said not to be done, but are. */
async function denied(etcd: EtcdClient, failures: readonly Failure[]): Promise<string[]> {
  const { keys } = await etcd.range({ key: 'a/', end: 'a0', keysOnly: true })
  const found = new Set(keys.map(({ key }) => key))
  const surely = failures.filter(({ error }) => error instanceof EtcdError && !error.maybeDone)
  return surely.map(({ key }) => key).filter((key) => found.has(key))
}

describeOn('etcd', 'the client for etcd, when something fails', () => {
  it('does not deny what was sent when the connection ends for the refusal of a watch', async () => {
    const server = await start()
    await addUsers(server)
    await server.ctl('auth', 'enable')
    const etcd = client(server.address, APP)
    await etcd.put('a/first', '')
    watched(etcd, 'forbidden', 1)
    const failures: Failure[] = []
    const writes = Array.from({ length: 200 }, (_, index) => {
      const key = `a/${index}`
      return etcd.put(key, '').catch((error: unknown) => failures.push({ key, error }))
    })
    await Promise.all(writes)
    expect(failures.length).toBeGreaterThan(0)
    expect(await denied(client(server.address, APP), failures)).toEqual([])
  })

  it('watches although its token has ended, and nothing else tells it so', async () => {
    const server = await start()
    await addUsers(server)
    await server.ctl('auth', 'enable')
    const etcd = client(server.address, APP)
    const from = (await etcd.put('a/0', '')) + 1
    // A user that gets a password loses its tokens, also if it is the same one.
    const passwd = ['--user', 'root:secret', 'user', 'passwd', 'app', '--interactive=false']
    execFileSync('etcdctl', ['--endpoints', server.address, ...passwd], {
      input: 'secret\n',
      env: { ...process.env, ETCDCTL_API: '3' },
    })
    const seen = watched(etcd, 'a/w', from)
    await client(server.address, APP).put('a/w', '')
    await eventually('the event', () => seen.includes('a/w'))
  })

  it('uses a user before authentication is enabled, and after it', async () => {
    const server = await start()
    await addUsers(server)
    const etcd = client(server.address, APP)
    await etcd.put('a/0', 'before')
    await server.ctl('auth', 'enable')
    await etcd.put('a/0', 'after')
    expect(String((await etcd.get('a/0'))?.value)).toBe('after')
  })

  it('tells its own errors around the end of a server, and repeats nothing', async () => {
    const server = await start()
    const etcd = client(server.address, { requestTimeout: '10s' })
    const done: string[] = []
    const failures: Failure[] = []
    let isOver = false
    const write = async (writer: number): Promise<void> => {
      for (let count = 0; !isOver; count++) {
        const key = `a/${writer}/${count}`
        await etcd.put(key, '').then(
          () => done.push(key),
          (error: unknown) => failures.push({ key, error }),
        )
      }
    }
    const writers = Array.from({ length: 50 }, (_, writer) => write(writer))
    for (let round = 1; round <= 3; round++) {
      const before = done.length
      await eventually('some writes', () => done.length > before + 200)
      await server.kill('SIGTERM')
      await server.start()
    }
    isOver = true
    await Promise.all(writers)
    expect(failures.filter(({ error }) => !(error instanceof EtcdError))).toEqual([])
    expect(await denied(etcd, failures)).toEqual([])
  })

  it('can be closed at any moment of its connecting', async () => {
    const server = await start()
    for (let turns = 0; turns < 40; turns++) {
      const etcd = new EtcdClient(server.address)
      watched(etcd, 'a', 1)
      const answer = etcd.get('a').catch((error: unknown) => error)
      for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
      await etcd.close()
      await answer
    }
  })

  it('goes on when the numbers of the streams of a connection are used up', async () => {
    const server = await start()
    const { connect } = http2
    endings.push(() => {
      http2.connect = connect
      syncBuiltinESMExports()
    })
    let connections = 0
    const almostUsedUp = (...args: Parameters<typeof connect>): ReturnType<typeof connect> => {
      // The types do not know this method.
      const session = connect(...args) as ReturnType<typeof connect> & { setNextStreamID(id: number): void }
      connections++
      session.once('connect', () => session.setNextStreamID(2 ** 31 - 21))
      return session
    }
    http2.connect = almostUsedUp as typeof connect
    syncBuiltinESMExports()
    const etcd = client(server.address)
    let failures = 0
    for (let count = 0; count < 30; count++)
      await etcd.put('a', '').catch(() => {
        failures++
      })
    expect(connections).toBeGreaterThan(1)
    expect(failures).toBeLessThan(connections)
  })

  it('keeps a lease while its server still waits for a leader that stands still', async () => {
    const servers = await cluster()
    const { leader, followers } = await servers.ranked()
    const etcd = client(followers[0]?.address ?? '')
    const lease = etcd.lease(5000, 'a', () => {})
    await lease.ready()
    const granted = lease.validUntil
    leader.pause()
    await lease.renew().catch(() => {})
    await eventually('a renewal, or the end', () => lease.validUntil > granted || now() > granted)
    expect(lease.validUntil).toBeGreaterThan(granted)
    leader.resume()
  })

  it('confirms a renewal while the next one is on its way', async () => {
    const server = await start()
    const proxy = await TcpProxy.start(server.port)
    endings.push(() => proxy.stop())
    const etcd = client(`127.0.0.1:${proxy.port}`, { requestTimeout: '20s', stallTimeout: '20s' })
    const lease = etcd.lease(60_000, 'a', () => {})
    await lease.ready()
    await lease.renew()
    const granted = lease.validUntil
    proxy.delayMs = 300
    const { down } = proxy.bytes
    const first = lease.renew()
    await eventually('its answer on the way', () => proxy.bytes.down > down)
    const next = lease.renew()
    await first
    const answer = etcd.get('a')
    await next
    expect(lease.validUntil).toBe(granted)
    await answer
    expect(lease.validUntil).toBeGreaterThan(granted)
  })

  it('counts a lease from the sending, and renews it by itself', async () => {
    const server = await start()
    const proxy = await TcpProxy.start(server.port)
    endings.push(() => proxy.stop())
    const delayMs = 300
    const etcd = client(`127.0.0.1:${proxy.port}`, { requestTimeout: '20s', stallTimeout: '20s' })
    await etcd.get('a')
    proxy.delayMs = delayMs
    const lease = etcd.lease(10_000, 'a', () => {})
    await lease.ready()
    // The answer took at least this long; timers may end a little early.
    const wayMs = 2 * delayMs - 2
    expect(lease.validUntil - lease.ttlMs).toBeLessThan(now() - wayMs)
    const granted = lease.validUntil
    await eventually('a renewal', () => lease.validUntil > granted)
    const heardAt = now()
    // And then a transaction has confirmed it.
    expect(lease.validUntil - lease.ttlMs).toBeLessThan(heardAt - 2 * wayMs)
  })
})
