import { afterEach, expect, it } from 'vitest'
import { systemEnv } from '../../src/base/env.js'
import { EtcdClient, EtcdError, type EtcdOptions } from '../../src/drivers/etcd/index.js'
import { EtcdLink } from '../../src/drivers/etcd/link.js'
import { linkSettings } from '../../src/drivers/etcd/options.js'
import { encode } from '../../src/drivers/etcd/requests.js'
import { eventually, now } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { type EtcdCluster, EtcdServer, startEtcd, startEtcdCluster } from '../servers/etcd.js'
import { freePort } from '../servers/ports.js'
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

/** A second member, which has no vote. */
async function startLearner(server: EtcdServer): Promise<EtcdServer> {
  const peerUrl = `http://127.0.0.1:${await freePort()}`
  await server.ctl('member', 'add', 'b', '--learner', `--peer-urls=${peerUrl}`)
  const place = {
    name: 'b',
    cluster: `a=http://127.0.0.1:${server.peerPort},b=${peerUrl}`,
    peerUrl,
    times: [],
  }
  const learner = new EtcdServer(await freePort(), place, { args: ['--initial-cluster-state', 'existing'] })
  endings.push(() => learner.stop())
  await learner.start()
  return learner
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

/** `app` may use the keys below `a/`; nobody is asked for a password yet. */
async function startWithUsers(): Promise<EtcdServer> {
  const server = await start()
  await server.addRoot()
  await server.addApp('a/')
  return server
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
    const server = await startWithUsers()
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
    const server = await startWithUsers()
    await server.ctl('auth', 'enable')
    const etcd = client(server.address, APP)
    const from = (await etcd.put('a/0', '')) + 1
    server.endTokens('app')
    const seen = watched(etcd, 'a/w', from)
    await client(server.address, APP).put('a/w', '')
    await eventually('the event', () => seen.includes('a/w'))
  })

  it('uses a user before authentication is enabled, and after it', async () => {
    const server = await startWithUsers()
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
    // One says that it ends, the other one just ends.
    for (const signal of ['SIGTERM', 'SIGKILL', 'SIGTERM', 'SIGKILL'] as const) {
      const before = done.length
      await eventually('some writes', () => done.length > before + 200)
      await server.kill(signal)
      await server.start()
    }
    isOver = true
    await Promise.all(writers)
    expect(failures.length).toBeGreaterThan(0)
    expect(failures.filter(({ error }) => !(error instanceof EtcdError))).toEqual([])
    expect(await denied(etcd, failures)).toEqual([])
    const { keys } = await etcd.range({ key: 'a/', end: 'a0', keysOnly: true })
    const repeated = keys.filter(({ createRevision, modRevision }) => createRevision !== modRevision)
    expect(repeated.map(({ key }) => key)).toEqual([])
  })

  it('can be closed at any moment of its connecting', async () => {
    const server = await start()
    let isAnswered = false
    for (let turns = 0; !isAnswered; turns += 1 + Math.floor(turns / 10)) {
      const etcd = new EtcdClient(server.address, { requestTimeout: '20s', stallTimeout: '20s' })
      watched(etcd, 'a', 1)
      const answer = etcd.get('a').then(
        () => {
          isAnswered = true
        },
        (error: unknown) => expect(error).toMatchObject({ code: 'CLOSED' }),
      )
      for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
      await etcd.close()
      await answer
    }
  })

  it('leaves a server that is a learner', async () => {
    const server = await start()
    const learner = await startLearner(server)
    const hosts = { ...systemEnv, random: () => 0 }
    const etcd = client(`${learner.address},${server.address}`, { env: hosts })
    await expect(etcd.get('a')).rejects.toThrow('not supported for learner')
    expect(await etcd.get('a')).toBe(null)
  })

  it('goes on when the numbers of the streams of a connection are used up', async () => {
    const server = await start()
    const proxy = await TcpProxy.start(server.port)
    endings.push(() => proxy.stop())
    const settings = linkSettings(`127.0.0.1:${proxy.port}`, {})
    const link = new EtcdLink({ ...settings, lastStreamId: 21 })
    endings.push(() => link.close())
    const status = '/etcdserverpb.Maintenance/Status'
    for (let count = 0; count < 30; count++)
      await link.call(
        status,
        encode(() => {}),
      )
    expect(proxy.connections).toBe(3)
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

  it('does not take the word of another leader for a renewal', async () => {
    const server = await start()
    const etcd = client(server.address, { requestTimeout: '20s', stallTimeout: '20s' })
    const { header } = await etcd.transaction({ success: [] })
    const lease = etcd.lease(60_000, 'a', () => {})
    await lease.ready()
    const granted = lease.validUntil
    await lease.renew()
    lease.confirm(header.raftTerm + 1, now())
    expect(lease.validUntil).toBe(granted)
    await lease.renew()
    lease.confirm(header.raftTerm, now())
    expect(lease.validUntil).toBeGreaterThan(granted)
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
