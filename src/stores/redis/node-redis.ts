import {
  byHash,
  type Driver,
  type Ear,
  type EarHandlers,
  lossesOf,
  type Master,
  type Replicas,
} from './driver.js'
import type { Script } from './lua/script.js'

interface ScriptCall {
  keys: string[]
  arguments: string[]
}

/** The part of node-redis (`redis` 5, 6) that a client, a Cluster and a Sentinel have in common. */
interface NodeRedisCommon {
  evalSha(sha: string, call: ScriptCall): Promise<unknown>
  eval(text: string, call: ScriptCall): Promise<unknown>
  on(event: string, listener: (...args: never[]) => void): unknown
  connect(): Promise<unknown>
  publish(channel: string, message: string): Promise<unknown>
  destroy(): void
  subscribe(channels: string[], listener: (message: unknown, channel: unknown) => void): Promise<unknown>
  unsubscribe(channel: string): Promise<unknown>
  readonly isOpen: boolean
}

/** A client of one server. */
export interface NodeRedisClient extends NodeRedisCommon {
  scan(
    cursor: string,
    options: { MATCH: string; COUNT: number },
  ): Promise<{ cursor: unknown; keys: unknown[] }>
  scriptLoad(text: string): Promise<unknown>
  multi(): NodeRedisMulti
  duplicate(overrides?: object): NodeRedisClient
  sendCommand(words: string[]): Promise<unknown>
  unref(): void
  readonly options?: { readonly socket?: object }
}

interface NodeRedisNode {
  readonly client?: NodeRedisClient | undefined
  readonly address?: string
}

export interface NodeRedisCluster extends NodeRedisCommon {
  readonly masters: readonly NodeRedisNode[]
  readonly replicas: readonly NodeRedisNode[]
  nodeClient(node: never): NodeRedisClient | Promise<NodeRedisClient>
  multi(routing: string): NodeRedisMulti
  duplicate(overrides?: object): NodeRedisCluster
}

interface NodeRedisSentinel extends NodeRedisCommon {
  getMasterNode(): unknown
  use<T>(work: (client: NodeRedisClient) => Promise<T>): Promise<T>
  duplicate(overrides?: object): NodeRedisSentinel
}

interface NodeRedisMulti {
  evalSha(sha: string, call: ScriptCall): NodeRedisMulti
  eval(text: string, call: ScriptCall): NodeRedisMulti
  wait(count: number, timeoutMs: number): NodeRedisMulti
  execAsPipeline(): Promise<unknown[]>
}

type AnyNodeRedis = NodeRedisClient | NodeRedisCluster | NodeRedisSentinel

const LOSSES = ['error', 'reconnecting', 'end'] as const
const KEYS_AT_ONCE = 1000

export function isNodeRedis(client: object): client is AnyNodeRedis {
  return ['evalSha', 'duplicate', 'subscribe', 'destroy'].every(
    (method) => typeof (client as Record<string, unknown>)[method] === 'function',
  )
}

function isCluster(client: AnyNodeRedis): client is NodeRedisCluster {
  return typeof (client as Partial<NodeRedisCluster>).nodeClient === 'function'
}

function isSentinel(client: AnyNodeRedis): client is NodeRedisSentinel {
  return typeof (client as Partial<NodeRedisSentinel>).getMasterNode === 'function'
}

/** The package `redis`. */
export class NodeRedisDriver implements Driver {
  readonly isCluster: boolean
  readonly #losses: { readonly count: number }
  #durableLosses = 0
  readonly #client: AnyNodeRedis
  readonly #ownsClient: boolean
  #durable: Promise<AnyNodeRedis> | undefined
  #nextNode = 0

  constructor(client: AnyNodeRedis, ownsClient: boolean) {
    this.#client = client
    this.#ownsClient = ownsClient
    this.isCluster = isCluster(client)
    this.#losses = lossesOf(client, LOSSES)
    if (ownsClient) quieten(client)
  }

  get losses(): number {
    return this.#losses.count + this.#durableLosses
  }

  async teach(script: Script): Promise<void> {
    const client = this.#client
    try {
      if (isSentinel(client)) await client.use((node) => node.scriptLoad(script.text))
      else await Promise.all((await this.#masters(client)).map((node) => node.scriptLoad(script.text)))
    } catch {
      // Told by the first call.
    }
  }

  run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    const client = this.#client
    const call = { keys: keys as string[], arguments: args as string[] }
    return byHash(
      () => client.evalSha(script.sha, call),
      () => client.eval(script.text, call),
    )
  }

  async runDurably(script: Script, keys: readonly string[], args: readonly string[], wanted: Replicas) {
    this.#durable ??= this.#duplicate()
    const client = await this.#durable
    const call = { keys: [...keys], arguments: [...args] }
    const run = async (start: (multi: NodeRedisMulti) => NodeRedisMulti) => {
      const send = (one: { multi(routing: string): NodeRedisMulti }): Promise<unknown[]> =>
        start(one.multi(keys[0] ?? ''))
          .wait(wanted.count, Math.ceil(wanted.timeoutMs))
          .execAsPipeline()
      const [reply, acknowledged] = await (isSentinel(client) ? client.use(send) : send(client))
      if (reply instanceof Error) throw reply
      return { reply, acknowledged: Number(acknowledged) }
    }
    return byHash(
      () => run((multi) => multi.evalSha(script.sha, call)),
      () => run((multi) => multi.eval(script.text, call)),
    )
  }

  async *scan(pattern: string): AsyncIterable<readonly string[]> {
    const client = this.#client
    if (isSentinel(client)) {
      for (let cursor = ''; cursor !== '0'; ) {
        const portion = await client.use((node) => scanOnce(node, cursor || '0', pattern))
        cursor = portion.cursor
        yield portion.keys
      }
      return
    }
    for (const node of await this.#masters(client)) {
      for (let cursor = ''; cursor !== '0'; ) {
        const portion = await scanOnce(node, cursor || '0', pattern)
        cursor = portion.cursor
        yield portion.keys
      }
    }
  }

  async masters(): Promise<readonly Master[]> {
    const client = this.#client
    if (isSentinel(client))
      return [{ name: null, command: (...words) => client.use((node) => node.sendCommand(words)) }]
    if (!isCluster(client)) return [{ name: null, command: (...words) => client.sendCommand(words) }]
    return client.masters.map((node) => ({
      name: node.address ?? 'a node',
      command: async (...words) => (await client.nodeClient(node as never)).sendCommand(words),
    }))
  }

  async openEar(handlers: EarHandlers): Promise<Ear> {
    const client = this.#client
    if (isSentinel(client)) return openSentinelEar(client, handlers)
    const node = isCluster(client) ? await this.#someNode(client) : client
    const ear = node.duplicate({
      // It ends for good when it is cut, so that whoever listens knows of it.
      socket: { ...node.options?.socket, reconnectStrategy: false },
      disableOfflineQueue: true,
    })
    let hasEnded = false
    const end = (): void => {
      if (!hasEnded) handlers.onEnd()
      hasEnded = true
    }
    ear.on('error', end)
    ear.on('end', end)
    await ear.connect()
    ear.unref()
    return earOf(ear, handlers)
  }

  async close(): Promise<void> {
    const durable = this.#durable
    this.#durable = undefined
    void durable?.then(destroy).catch(() => {})
    if (this.#ownsClient) destroy(this.#client)
  }

  async #masters(client: NodeRedisClient | NodeRedisCluster): Promise<NodeRedisClient[]> {
    if (!isCluster(client)) return [client]
    return Promise.all(client.masters.map((node) => client.nodeClient(node as never)))
  }

  /** Messages go to every node of a Cluster, so any will do; another one each time, since the last may be dead. */
  async #someNode(cluster: NodeRedisCluster): Promise<NodeRedisClient> {
    const { masters } = cluster
    const node = masters[this.#nextNode++ % Math.max(1, masters.length)]
    if (!node) throw new Error('No node of the Cluster is known yet')
    return cluster.nodeClient(node as never)
  }

  /** For WAIT, which blocks its connection. It is made anew when it has ended, whatever the user's client would do. */
  async #duplicate(): Promise<AnyNodeRedis> {
    const copy: AnyNodeRedis = this.#client.duplicate()
    for (const event of LOSSES) copy.on(event, () => this.#durableLosses++)
    quieten(copy)
    const forget = (): void => {
      this.#durable = undefined
    }
    copy.on('end', forget)
    try {
      await copy.connect()
      return copy
    } catch (error) {
      forget()
      throw error
    }
  }

  publish(channel: string, message: string): Promise<unknown> {
    return this.#client.publish(channel, message)
  }
}

function earOf(client: NodeRedisCommon, { onMessage }: EarHandlers): Ear {
  const hear = (message: unknown, channel: unknown): void => onMessage(String(channel), String(message))
  return {
    subscribe: async (channels) => void (await client.subscribe([...channels], hear)),
    unsubscribe: async (channel) => void (await client.unsubscribe(channel)),
    close: () => destroy(client),
  }
}

/** A Sentinel mends its connections by itself and does not say when; the store asks a little more often there. */
async function openSentinelEar(client: NodeRedisSentinel, handlers: EarHandlers): Promise<Ear> {
  const ear = client.duplicate()
  ear.on('error', () => {})
  ear.on('topology-change', handlers.onGap)
  await ear.connect()
  return earOf(ear, handlers)
}

/** Of a client that we have opened: its errors are told by the calls that fail, and it does not keep the process from ending. */
function quieten(client: AnyNodeRedis): void {
  client.on('error', () => {})
  if (isCluster(client)) client.on('node-ready', () => unrefNodes(client))
  else if (!isSentinel(client)) client.on('connect', () => client.unref())
}

function unrefNodes(cluster: NodeRedisCluster): void {
  for (const { client } of [...cluster.masters, ...cluster.replicas]) client?.unref()
}

function destroy(client: NodeRedisCommon): void {
  if (client.isOpen) client.destroy()
}

async function scanOnce(
  node: NodeRedisClient,
  cursor: string,
  pattern: string,
): Promise<{ cursor: string; keys: string[] }> {
  const found = await node.scan(cursor, { MATCH: pattern, COUNT: KEYS_AT_ONCE })
  return { cursor: String(found.cursor), keys: found.keys.map(String) }
}
