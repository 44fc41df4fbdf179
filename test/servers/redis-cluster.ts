import { eventually } from '../../src/testing/conformance/checks.js'
import { needServer } from './availability.js'
import { freePort } from './ports.js'
import { fieldOf, type RedisOptions, RedisServer, redisCli } from './redis.js'

const NODES = 6
const FAIL_OVER_LIMIT_MS = 60_000
/**
 * How long the nodes wait for a silent one. Long, as a machine that stands still for a moment must
 * not lead to a fail-over,
 */
const PATIENT_MS = 60_000
/**
 * but for the time in which a test waits for one. They also tell each other news more often then.
 */
const QUICK_MS = 1000

/** What a node says about another one, or about itself. */
interface Member {
  id: string
  port: number
  isMaster: boolean
  isFailed: boolean
  /** Of which node it is a replica. */
  masterId: string
  slots: readonly (readonly [first: number, last: number])[]
}

/**
 * A Redis Cluster of three masters, each with a replica. A node that is restarted with
 * `keepData: true` comes back as a member, with its keys only if it has persistence.
 */
export class RedisCluster {
  readonly nodes: readonly RedisServer[]

  constructor(nodes: readonly RedisServer[]) {
    this.nodes = nodes
  }

  get url(): string {
    return `redis+cluster://${this.nodes.map(({ address }) => address).join(',')}`
  }

  /** The node that serves the key. */
  async masterOf(key: string): Promise<RedisServer> {
    const asked = this.#running()[0]
    if (asked === undefined) throw new Error('no node is running')
    const slot = Number(await asked.cli('cluster', 'keyslot', key))
    const owner = ownerOf(slot, await membersSeenBy(asked))
    return this.#nodeAt(owner?.port)
  }

  /** The node that takes over from the master of the key. */
  async replicaOf(key: string): Promise<RedisServer> {
    const master = await this.masterOf(key)
    const members = await membersSeenBy(master)
    const { id } = members.find(({ port }) => port === master.port) ?? { id: '' }
    return this.#nodeAt(members.find(({ masterId, isFailed }) => masterId === id && !isFailed)?.port)
  }

  /**
   * kill -9 of the node that serves the key; resolves with the promoted one when every node agrees
   * and serves again.
   */
  async killMaster(key: string): Promise<RedisServer> {
    const [old, next] = [await this.masterOf(key), await this.replicaOf(key)]
    const slot = Number(await old.cli('cluster', 'keyslot', key))
    await old.kill()
    const isPromoted = async (): Promise<boolean> => {
      const views = await Promise.all(this.#running().map(membersSeenBy))
      return views.every((members) => ownerOf(slot, members)?.port === next.port)
    }
    await this.#quickly(() =>
      eventually(`the fail-over to port ${next.port}`, isPromoted, FAIL_OVER_LIMIT_MS),
    )
    await this.serving()
    return next
  }

  /**
   * Resolves when the running nodes serve, agree on who is who, and every replica follows its
   * master.
   */
  async serving(): Promise<void> {
    await this.#quickly(() =>
      eventually('the cluster serving', async () => this.#isServing(), FAIL_OVER_LIMIT_MS),
    )
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()))
  }

  async #isServing(): Promise<boolean> {
    const running = this.#running()
    const views = await Promise.all(running.map(membersSeenBy))
    // A node that comes back takes itself for what it was, until it hears of the others.
    const opinions = new Set(views.map((members) => rolesIn(members, running)))
    return opinions.size === 1 && (await Promise.all(running.map(isServing))).every(Boolean)
  }

  async #quickly(work: () => Promise<void>): Promise<void> {
    await this.#giveUpAfter(QUICK_MS)
    await work()
    await this.#giveUpAfter(PATIENT_MS)
  }

  async #giveUpAfter(ms: number): Promise<void> {
    const setting = ['config', 'set', 'cluster-node-timeout', String(ms)]
    await Promise.all(this.#running().map((node) => node.cli(...setting)))
  }

  #running(): RedisServer[] {
    return this.nodes.filter(({ isRunning }) => isRunning)
  }

  #nodeAt(port: number | undefined): RedisServer {
    const node = this.nodes.find((each) => each.port === port)
    if (node === undefined) throw new Error(`no node on port ${port}`)
    return node
  }
}

/** Starts the cluster; ready in some 2 s. */
export async function startRedisCluster(
  node: (index: number) => RedisOptions = () => ({}),
): Promise<RedisCluster> {
  needServer('redis')
  const nodes: RedisServer[] = []
  for (let index = 0; index < NODES; index++) nodes.push(await memberOf(node(index)))
  const cluster = new RedisCluster(nodes)
  try {
    await Promise.all(nodes.map((each) => each.start()))
    const addresses = nodes.map(({ address }) => address)
    const replicas = ['--cluster-replicas', '1', '--cluster-yes']
    await redisCli(cluster.nodes[0]?.port ?? 0, ['--cluster', 'create', ...addresses, ...replicas])
    await cluster.serving()
    return cluster
  } catch (error) {
    await cluster.stop()
    throw error
  }
}

async function memberOf({ args = [], ...options }: RedisOptions): Promise<RedisServer> {
  const clustered = ['--cluster-enabled', 'yes', '--cluster-port', String(await freePort())]
  const quick = ['--cluster-node-timeout', String(QUICK_MS)]
  return new RedisServer(await freePort(), { ...options, args: [...clustered, ...quick, ...args] })
}

async function isServing(node: RedisServer): Promise<boolean> {
  if (fieldOf(await node.cli('cluster', 'info'), 'cluster_state') !== 'ok') return false
  const info = await node.cli('info', 'replication')
  return fieldOf(info, 'role') === 'master' || fieldOf(info, 'master_link_status') === 'up'
}

/** Who is master of what and who is whose replica among the nodes, as text to compare. */
function rolesIn(members: readonly Member[], nodes: readonly RedisServer[]): string {
  const present = members.filter(({ port }) => nodes.some((node) => node.port === port))
  return present
    .map(({ id, masterId, isFailed, slots }) => `${id} ${masterId} ${isFailed} ${slots}`)
    .sort()
    .join('\n')
}

async function membersSeenBy(node: RedisServer): Promise<Member[]> {
  return (await node.cli('cluster', 'nodes')).split('\n').map((line) => {
    // id ip:port@busport flags master-id ping pong epoch link slot slot-slot …
    const [id = '', address = '', flags = '', masterId = '', , , , , ...slots] = line.split(' ')
    return {
      id,
      port: Number(/:(\d+)@/.exec(address)?.[1]),
      isMaster: flags.includes('master'),
      isFailed: /\bfail\b/.test(flags),
      masterId,
      slots: slots.map((range) => {
        const [first = NaN, last = first] = range.split('-').map(Number)
        return [first, last] as const
      }),
    }
  })
}

function ownerOf(slot: number, members: readonly Member[]): Member | undefined {
  return members.find(
    ({ isMaster, isFailed, slots }) =>
      isMaster && !isFailed && slots.some(([first, last]) => first <= slot && slot <= last),
  )
}
