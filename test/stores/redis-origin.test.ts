import { Cluster, Redis } from 'ioredis'
import { Redis as Valkey } from 'iovalkey'
import { createClient, createSentinel } from 'redis'
import { expect, it, onTestFinished } from 'vitest'
import type { Connection, Origin } from '../../src/contract/store.js'
import { type RedisClient, type RedisOptions, redis } from '../../src/stores/redis/index.js'
import { eventually, rejectsWith } from '../../src/testing/conformance/checks.js'
import { InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'
import { claimOf } from '../../src/testing/conformance/scene.js'
import { describeOn } from '../servers/availability.js'
import { type RedisServer, type RedisOptions as ServerOptions, startRedis } from '../servers/redis.js'
import { startRedisCluster } from '../servers/redis-cluster.js'
import { startRedisSentinel } from '../servers/redis-sentinel.js'

async function started(options: ServerOptions = {}): Promise<RedisServer> {
  const server = await startRedis(options)
  onTestFinished(() => server.stop())
  return server
}

let clients = 0
function connect(from: string | RedisClient, options: RedisOptions = {}): Connection & { origin: Origin } {
  const connection = redis(from, options).connect({ id: `client:${++clients}`, space: 'default', push() {} })
  onTestFinished(() => connection.close())
  const { origin } = connection
  if (!origin) throw new Error('The store tells no origin')
  return Object.assign(connection, { origin })
}

/** Every way to one server. */
const WAYS: Record<string, (server: RedisServer) => Promise<Connection & { origin: Origin }>> = {
  'ioredis by URL': async ({ url }) => connect(url, { driver: 'ioredis' }),
  'node-redis by URL': async ({ url }) => connect(url, { driver: 'redis' }),
  'iovalkey by URL': async ({ url }) => connect(url, { driver: 'iovalkey' }),
  "the user's ioredis": async ({ port }) => {
    const own = new Redis(port, { retryStrategy: () => 5 })
    own.on('error', () => {})
    onTestFinished(() => own.disconnect())
    return connect(own)
  },
  "the user's iovalkey": async ({ port }) => {
    const own = new Valkey(port, { retryStrategy: () => 5 })
    own.on('error', () => {})
    onTestFinished(() => own.disconnect())
    return connect(own as never)
  },
  "the user's node-redis": async ({ url }) => {
    const own = createClient({ url, socket: { reconnectStrategy: () => 5 } })
    own.on('error', () => {})
    await own.connect()
    onTestFinished(() => own.destroy())
    return connect(own)
  },
}

/** What a call was answered, and the link before it was sent and after its answer. */
interface Seen {
  readonly isNewRun: boolean
  readonly links: readonly [before: number, after: number]
}

/** Calls whose answers tell whether the run answers that has the hold and the state, or a later one. */
class Watch {
  readonly seen: Seen[] = []
  readonly #connection: Connection & { origin: Origin }
  #isOver = false
  #number = 0

  constructor(connection: Connection & { origin: Origin }) {
    this.#connection = connection
  }

  async prepare(): Promise<void> {
    const connection = this.#connection
    await connection.claim(claimOf('door', 'old'))
    await connection.write({ key: 'mark', expect: null, value: 'old', retentionMs: null })
  }

  start(loops: number): () => Promise<unknown> {
    const running = Array.from({ length: loops }, () => this.#loop())
    return () => {
      this.#isOver = true
      return Promise.all(running)
    }
  }

  async #loop(): Promise<void> {
    while (!this.#isOver) {
      await this.#call(async () => (await this.#claim()).status === 'granted')
      await this.#call(async () => (await this.#connection.read('mark', false)) === null)
    }
  }

  async #claim() {
    const id = `new:${this.#number++}`
    const reply = await this.#connection.claim(claimOf('door', id, { mode: 'try' }))
    if (reply.status === 'granted') void Promise.resolve(this.#connection.release('door', id)).catch(() => {})
    return reply
  }

  async #call(isNewRun: () => Promise<boolean>): Promise<void> {
    const { origin } = this.#connection
    const before = origin.link
    try {
      const isNew = await isNewRun()
      this.seen.push({ isNewRun: isNew, links: [before, origin.link] })
    } catch {
      // While the server is down. The store does not wait, so the loop does.
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  }
}

describeOn('redis', 'the origin of a Redis connection', () => {
  it.each(Object.entries(WAYS))(
    'stays the same while one run of the server answers, by %s',
    async (_name, open) => {
      const server = await started()
      const connection = await open(server)
      const { origin } = connection
      expect(await origin.run()).toBe(await server.info('run_id'))
      const { link } = origin
      await connection.read('state', true)
      for (let number = 0; number < 100; number++) {
        await connection.claim(claimOf('door', `client:${number}`))
        await connection.pulse([])
        expect(origin.link).toBe(link)
      }
      expect(await origin.run()).toBe(await server.info('run_id'))
      expect(origin.link).toBe(link)
    },
  )

  it.each(Object.entries(WAYS))(
    'is another one for every answer of a later run, by %s',
    async (_name, open) => {
      const server = await started()
      const connection = await open(server)
      const { origin } = connection
      const runs = [await origin.run()]
      const watch = new Watch(connection)
      await watch.prepare()
      const { link } = origin
      const stop = watch.start(8)
      await eventually('answers of the first run', () => watch.seen.length > 50)
      await server.restart({ keepData: false })
      await eventually(
        'answers of the second run',
        () => watch.seen.filter((each) => each.isNewRun).length > 50,
      )
      await stop()
      for (const { isNewRun, links } of watch.seen) if (isNewRun) expect(links).not.toEqual([link, link])
      expect(watch.seen.filter(({ links }) => links[0] === link && links[1] === link).length).toBeGreaterThan(
        50,
      )
      expect(origin.link).toBeGreaterThan(link)
      runs.push(await origin.run())
      expect(new Set([...runs, await server.info('run_id')]).size).toBe(2)
    },
    60_000,
  )

  it('never comes again, however often the connection is lost', async () => {
    const server = await started()
    const connection = connect(server.url)
    const links = new Set<number>()
    for (let round = 0; round < 5; round++) {
      await eventually('an answer', () =>
        connection.pulse([]).then(
          () => true,
          () => false,
        ),
      )
      links.add(connection.origin.link)
      const { link } = connection.origin
      await server.dropClients()
      await eventually('the loss', () => connection.origin.link !== link)
    }
    expect(links.size).toBe(5)
    expect([...links]).toEqual([...links].sort((a, b) => a - b))
  })

  it.each(Object.entries(WAYS))(
    'has no run where every write is on disk first, by %s',
    async (_name, open) => {
      const server = await started({ persistence: 'always' })
      const connection = await open(server)
      expect(await connection.origin.run()).toBeNull()
      await server.cli('config', 'set', 'appendfsync', 'everysec')
      expect(await connection.origin.run()).toBe(await server.info('run_id'))
    },
  )

  it('has a run where the server may lose writes, or does not tell', async () => {
    const everysec = await started({ persistence: 'everysec' })
    expect(await connect(everysec.url).origin.run()).toBe(await everysec.info('run_id'))
    const silent = await started({ persistence: 'always', args: ['--rename-command', 'config', ''] })
    expect(await connect(silent.url).origin.run()).toBe(await silent.info('run_id'))
    // A replica that takes over may lack the latest writes.
    const primary = await started({ persistence: 'always' })
    await started({ args: ['--replicaof', '127.0.0.1', String(primary.port)] })
    await primary.hasReplica()
    expect(await connect(primary.url).origin.run()).toBe(await primary.info('run_id'))
  })

  it('is closed with its connection', async () => {
    const server = await started()
    const store = redis(server.url)
    const [one, two] = [1, 2].map((id) => store.connect({ id: `${id}`, space: 'default', push() {} }))
    onTestFinished(() => two?.close())
    await one?.origin?.run()
    await one?.close()
    await rejectsWith('CLOSED', one?.origin?.run() ?? Promise.resolve())
    expect(await two?.origin?.run()).toBe(await server.info('run_id'))
  })

  it('passes through a store that disturbs it', async () => {
    const server = await started()
    const store = new InterceptedStore(redis(server.url))
    const connection = store.connect({ id: 'client', space: 'default', push() {} })
    onTestFinished(() => connection.close())
    expect(await connection.origin?.run()).toBe(await server.info('run_id'))
    const link = connection.origin?.link
    await server.dropClients()
    await expect.poll(() => connection.origin?.link).not.toBe(link)
    store.cut('origin')
    await rejectsWith('STORE_UNAVAILABLE', connection.origin?.run() ?? Promise.resolve())
  })

  it('counts the connection that waits for replicas', async () => {
    const primary = await started()
    await started({ args: ['--replicaof', '127.0.0.1', String(primary.port)] })
    await primary.hasReplica()
    for (const driver of ['ioredis', 'redis'] as const) {
      const connection = connect(primary.url, { driver, replicas: 1, prefix: driver })
      await connection.pulse([])
      const before = connection.origin.link
      await connection.claim(claimOf('door', 'client:1'))
      const after = connection.origin.link
      expect(after).toBeGreaterThan(before)
      await connection.claim(claimOf('door', 'client:1'))
      expect(connection.origin.link).toBe(after)
    }
  })

  it('names the masters of a Cluster, and changes when one of them does', async () => {
    const cluster = await startRedisCluster()
    onTestFinished(() => cluster.stop())
    const own = new Cluster(
      cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port })),
      { clusterRetryStrategy: () => 20 },
    )
    own.on('error', () => {})
    onTestFinished(() => own.disconnect())
    const connections = [
      connect(cluster.url, { driver: 'ioredis' }),
      connect(cluster.url, { driver: 'redis' }),
      connect(own),
    ]
    const isServed = (each: Connection): Promise<boolean> =>
      Promise.all(Array.from({ length: 20 }, (_, index) => each.read(`state ${index}`, false))).then(
        () => true,
        () => false,
      )
    for (const each of connections) await eventually('answers', () => isServed(each))
    const before = await Promise.all(
      connections.map(async ({ origin }) => ({ run: await origin.run(), link: origin.link })),
    )
    for (const each of connections) await isServed(each)
    expect(connections.map(({ origin }) => origin.link)).toEqual(before.map(({ link }) => link))
    expect(new Set(before.map(({ run }) => run)).size).toBe(1)
    const promoted = await cluster.killMaster('{door}')
    for (const each of connections) await eventually('answers', () => isServed(each), 60_000)
    for (const [index, { origin }] of connections.entries()) {
      expect(origin.link).toBeGreaterThan(before[index]?.link ?? 0)
      expect(before[index]?.run).not.toContain(await promoted.info('run_id'))
      await eventually('the run of the promoted one', async () =>
        String(await origin.run().catch(() => null)).includes(await promoted.info('run_id')),
      )
    }
  }, 180_000)

  it('is another one after a fail-over by Sentinels', async () => {
    const group = await startRedisSentinel(() => ({ persistence: 'always' }))
    onTestFinished(() => group.stop())
    const own = createSentinel({
      name: group.name,
      sentinelRootNodes: group.sentinels.map(({ port }) => ({ host: '127.0.0.1', port })),
    })
    own.on('error', () => {})
    await own.connect()
    onTestFinished(() => own.destroy())
    const connections = [
      connect(group.url, { driver: 'ioredis' }),
      connect(group.url, { driver: 'redis' }),
      connect(own),
    ]
    const first = await (await group.master()).info('run_id')
    const links: number[] = []
    for (const { origin } of connections) {
      expect(await origin.run()).toBe(first)
      links.push(origin.link)
    }
    const promoted = await group.killMaster()
    for (const [index, { origin }] of connections.entries()) {
      await eventually(
        'the run of the promoted one',
        async () => (await origin.run().catch(() => null)) === (await promoted.info('run_id')),
      )
      expect(origin.link).toBeGreaterThan(links[index] ?? 0)
    }
  }, 180_000)
})
