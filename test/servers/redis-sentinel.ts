import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { eventually } from '../../src/testing/conformance/checks.js'
import { needServer } from './availability.js'
import { freePort } from './ports.js'
import { type RedisOptions, RedisServer, redisCli } from './redis.js'
import { Server } from './server.js'

const SENTINELS = 3
/**
 * How long a silent server is waited for while a test waits for a fail-over, and how often a
 * Sentinel asks and tells, in milliseconds: more often than out of the box, where it takes 15 s
 * until a node that came back follows. The periods are tied together. A new acquaintance is asked
 * for the first time after one ping period, so down-after must be well above that, or healthy
 * servers are given up. What a replica last told counts for five ping periods, and it is asked once
 * a second: below 250 it is mostly too old to be promoted.
 */
const DOWN_AFTER_MS = 1000
/** At any other time: a machine that stands still for a moment must not lead to a fail-over. */
const PATIENT_MS = 60_000
const PERIODS = ['ping-period', '400', 'info-period', '500', 'publish-period', '200', 'ask-period', '100']
const FAIL_OVER_LIMIT_MS = 60_000

/**
 * A primary and its replica, watched by three Sentinels that fail over when the primary is silent,
 * and a test waits for that.
 */
export class RedisSentinel {
  /** The name of the group, as clients ask the Sentinels for it. */
  readonly name = 'holdfast'
  /** The first one starts as the primary. */
  readonly nodes: readonly [RedisServer, RedisServer]
  readonly sentinels: readonly Server[]

  constructor(nodes: readonly [RedisServer, RedisServer], sentinels: readonly Server[]) {
    this.nodes = nodes
    this.sentinels = sentinels
  }

  get url(): string {
    return `redis+sentinel://${this.sentinels.map(({ address }) => address).join(',')}/${this.name}`
  }

  /** The primary, according to the Sentinels. */
  async master(): Promise<RedisServer> {
    const sentinel = this.sentinels.find(({ isRunning }) => isRunning)
    const port = await this.#masterSeenBy(sentinel)
    const node = this.nodes.find((each) => each.port === port)
    if (node === undefined) throw new Error(`no node on port ${port}`)
    return node
  }

  /**
   * kill -9 of the primary; resolves with the promoted one when every Sentinel knows it and it
   * takes writes.
   */
  async killMaster(): Promise<RedisServer> {
    const [old, next] = await this.#masterAndReplica()
    await old.kill()
    await this.#promoted(next)
    return next
  }

  /** The same with the primary paused: it wakes up later, still believing that it is one. */
  async pauseMaster(): Promise<RedisServer> {
    const [old, next] = await this.#masterAndReplica()
    old.pause()
    await this.#promoted(next)
    return next
  }

  /** Resolves when the other node follows the primary, so that it can take over. */
  async replicating(): Promise<void> {
    const [master, replica] = await this.#masterAndReplica()
    // A Sentinel cuts the connections of a node that it gives another role, ours as well.
    const isFollowing = async (): Promise<boolean> => {
      const info = await replica.cli('info', 'replication').catch(() => '')
      return info.includes(`master_port:${master.port}\r\nmaster_link_status:up`)
    }
    await eventually('the replica following', isFollowing, FAIL_OVER_LIMIT_MS)
  }

  async stop(): Promise<void> {
    await Promise.all([...this.sentinels, ...this.nodes].map((each) => each.stop()))
  }

  async #masterAndReplica(): Promise<[RedisServer, RedisServer]> {
    const master = await this.master()
    const [first, second] = this.nodes
    return master === first ? [first, second] : [second, first]
  }

  async #promoted(node: RedisServer): Promise<void> {
    const isPromoted = async (): Promise<boolean> => {
      const seen = await Promise.all(this.sentinels.map((sentinel) => this.#masterSeenBy(sentinel)))
      return seen.every((port) => port === node.port) && (await node.info('role')) === 'master'
    }
    const ask = (): Promise<boolean> => isPromoted().catch(() => false)
    await this.#giveUpAfter(DOWN_AFTER_MS)
    await eventually(`the fail-over to port ${node.port}`, ask, FAIL_OVER_LIMIT_MS)
    await this.#giveUpAfter(PATIENT_MS)
  }

  async #giveUpAfter(ms: number): Promise<void> {
    const setting = ['sentinel', 'set', this.name, 'down-after-milliseconds', String(ms)]
    await Promise.all(this.sentinels.map(({ port }) => redisCli(port, setting)))
  }

  async #masterSeenBy(sentinel: Server | undefined): Promise<number> {
    if (sentinel === undefined) throw new Error('no Sentinel is running')
    const [, port] = (
      await redisCli(sentinel.port, ['sentinel', 'get-master-addr-by-name', this.name])
    ).split('\n')
    return Number(port)
  }
}

/**
 * Starts the group; ready in some 2 s. `node` gives options to the primary (0) and the replica (1).
 */
export async function startRedisSentinel(
  node: (index: number) => RedisOptions = () => ({}),
): Promise<RedisSentinel> {
  needServer('redis')
  const primary = new RedisServer(await freePort(), node(0))
  const { args = [], ...options } = node(1)
  const following = [...args, '--replicaof', '127.0.0.1', String(primary.port)]
  const replica = new RedisServer(await freePort(), { ...options, args: following })
  const sentinels: Server[] = []
  const group = new RedisSentinel([primary, replica], sentinels)
  try {
    await Promise.all([primary.start(), replica.start()])
    for (let count = 0; count < SENTINELS; count++) sentinels.push(await sentinelOf(group.name, primary.port))
    // A Sentinel finds replicas by asking the primary now and then: there must be one by the first
    // time.
    await eventually('the link', async () => (await replica.info('master_link_status')) === 'up')
    await Promise.all(sentinels.map((sentinel) => sentinel.start()))
    await Promise.all(sentinels.map((sentinel) => knowsEverybody(sentinel, group.name)))
    return group
  } catch (error) {
    await group.stop()
    throw error
  }
}

async function sentinelOf(name: string, masterPort: number): Promise<Server> {
  const kind = {
    name: 'sentinel',
    command: (server: Server) => ['redis-server', configOf(server), '--sentinel'],
    async layOut(server: Server) {
      const lines = [
        `port ${server.port}`,
        'bind 127.0.0.1',
        `dir ${server.dataFolder}`,
        `sentinel monitor ${name} 127.0.0.1 ${masterPort} 2`,
        `sentinel down-after-milliseconds ${name} ${PATIENT_MS}`,
        `sentinel failover-timeout ${name} 2000`,
      ]
      await writeFile(configOf(server), `${lines.join('\n')}\n`)
    },
    isReady: async (server: Server) =>
      (await redisCli(server.port, ['sentinel', 'debug', ...PERIODS])) === 'OK',
  }
  return new Server(kind, await freePort())
}

/** It rewrites the file itself when it learns something. */
function configOf(server: Server): string {
  return join(server.dataFolder, 'sentinel.conf')
}

async function knowsEverybody(sentinel: Server, name: string): Promise<void> {
  await eventually('the Sentinels knowing each other and the replica', async () => {
    const words = (await redisCli(sentinel.port, ['sentinel', 'master', name])).split('\n')
    const numberOf = (field: string) => Number(words[words.indexOf(field) + 1])
    return numberOf('num-slaves') === 1 && numberOf('num-other-sentinels') === SENTINELS - 1
  })
}
