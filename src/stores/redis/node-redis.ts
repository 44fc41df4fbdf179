import { HoldfastError } from '../../base/errors.js'
import { quietly } from '../../base/quietly.js'
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
import { glob } from './names.js'

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
  /** What it puts before keys, but not before patterns; not documented. Since 6.3. */
  readonly _keyPrefix?: unknown
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
  /** Not documented, but the only way to the client of the present master, with all its settings. In 5 and in 6. */
  _execute<T>(isReadonly: boolean, work: (master: NodeRedisClient) => Promise<T>): Promise<T>
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
  readonly ended?: Promise<void>
  readonly #losses: { readonly count: number }
  #durableLosses = 0
  readonly #client: AnyNodeRedis
  readonly #ownsClient: boolean
  readonly #keyPrefix: string
  #durable: Promise<NodeRedisClient | NodeRedisCluster> | undefined
  #nextNode = 0
  /** The last call to a Sentinel, settled when the next one may be sent. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(client: AnyNodeRedis, ownsClient: boolean) {
    this.#client = client
    this.#ownsClient = ownsClient
    this.isCluster = isCluster(client)
    this.#keyPrefix = String(client._keyPrefix ?? '')
    this.#losses = lossesOf(client, LOSSES)
    if (!ownsClient) return
    quieten(client)
    this.ended = new Promise((resolve) => {
      if (isCluster(client)) onNodeEnd(client, resolve)
      else onEnd(client, resolve)
    })
  }

  get losses(): number {
    return this.#losses.count + this.#durableLosses
  }

  async teach(script: Script): Promise<void> {
    try {
      await Promise.all((await this.#masters()).map(async (node) => node.scriptLoad(script.text)))
    } catch {
      // Told by the first call.
    }
  }

  run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    if (!isSentinel(this.#client)) return this.#run(script, keys, args)
    // While it has one call wait for a connection, it sends later ones before it: those who ask would not stand in line as they came.
    const answer = this.#last.then(() => this.#run(script, keys, args))
    this.#last = answer.catch(() => {})
    return answer
  }

  #run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
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
      const [reply, acknowledged] = await start(client.multi(keys[0] ?? ''))
        .wait(wanted.count, Math.ceil(wanted.timeoutMs))
        .execAsPipeline()
      if (reply instanceof Error) throw reply
      return { reply, acknowledged: Number(acknowledged) }
    }
    return byHash(
      () => run((multi) => multi.evalSha(script.sha, call)),
      () => run((multi) => multi.eval(script.text, call)),
    )
  }

  async *scan(pattern: string): AsyncIterable<readonly string[]> {
    for (const node of await this.#masters()) {
      for (let cursor = ''; cursor !== '0'; ) {
        const portion = await scanOnce(node, cursor || '0', glob(this.#keyPrefix) + pattern)
        cursor = portion.cursor
        yield portion.keys
      }
    }
  }

  async masters(): Promise<readonly Master[]> {
    const client = this.#client
    if (!isCluster(client))
      return (await this.#masters()).map((node) => ({
        name: null,
        command: (...words) => node.sendCommand(words),
      }))
    return client.masters.map((node) => ({
      name: node.address ?? 'a node',
      command: async (...words) => (await client.nodeClient(node as never)).sendCommand(words),
    }))
  }

  async openEar(handlers: EarHandlers): Promise<Ear> {
    const ear = oneLife(await this.#someNode())
    onEnd(ear, handlers.onEnd)
    await ear.connect()
    return earOf(ear, handlers)
  }

  async close(): Promise<void> {
    const durable = this.#durable
    this.#durable = undefined
    void durable?.then(destroy).catch(() => {})
    if (this.#ownsClient) destroy(this.#client)
  }

  async #masters(): Promise<NodeRedisClient[]> {
    const client = this.#client
    if (isSentinel(client)) return [await masterOf(client)]
    if (!isCluster(client)) return [client]
    return Promise.all(client.masters.map(async (node) => client.nodeClient(node as never)))
  }

  /** Messages go to every node of a Cluster, so any will do; another one each time, since the last may be dead. */
  async #someNode(): Promise<NodeRedisClient> {
    const client = this.#client
    if (isSentinel(client)) return masterOf(client)
    if (!isCluster(client)) return client
    const node = client.masters[this.#nextNode++ % Math.max(1, client.masters.length)]
    if (!node) throw new Error('No node of the Cluster is known yet')
    return client.nodeClient(node as never)
  }

  /** For WAIT, which blocks its connection. It is made anew when it has ended, whatever the user's client would do. */
  async #duplicate(): Promise<NodeRedisClient | NodeRedisCluster> {
    const client = this.#client
    // A Sentinel puts its prefix before keys by itself; its master knows of none.
    const overrides = isSentinel(client) ? { keyPrefix: this.#keyPrefix } : {}
    const copy = isCluster(client) ? client.duplicate() : oneLife(await this.#someNode(), overrides)
    for (const event of LOSSES) copy.on(event, () => this.#durableLosses++)
    if (isCluster(copy)) quieten(copy)
    const forget = (): void => {
      this.#durable = undefined
    }
    onEnd(copy, forget)
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

/** A node that has given up, while the Cluster is open, would be so for good. */
function onNodeEnd(cluster: NodeRedisCluster, end: () => void): void {
  cluster.on('node-error', () => {
    if (cluster.masters.some(({ client }) => client?.isOpen === false)) end()
  })
}

function earOf(client: NodeRedisCommon, { onMessage }: EarHandlers): Ear {
  const hear = (message: unknown, channel: unknown): void => onMessage(String(channel), String(message))
  return {
    subscribe: async (channels) => void (await client.subscribe([...channels], hear)),
    unsubscribe: async (channel) => void (await client.unsubscribe(channel)),
    close: () => quietly(() => destroy(client)),
  }
}

async function masterOf(sentinel: NodeRedisSentinel): Promise<NodeRedisClient> {
  if (typeof sentinel._execute !== 'function')
    throw new HoldfastError(
      'UNSUPPORTED',
      "This version of redis hides its Sentinel's master; give a URL (redis+sentinel://…) instead",
      { store: 'redis' },
    )
  return sentinel._execute(false, async (master) => master)
}

/** One more connection, which ends for good when it is cut, so that whoever uses it knows of it. */
function oneLife(client: NodeRedisClient, overrides: object = {}): NodeRedisClient {
  const copy = client.duplicate({
    ...overrides,
    socket: { ...client.options?.socket, reconnectStrategy: false },
    disableOfflineQueue: true,
  })
  quieten(copy)
  return copy
}

/** A client that may not connect again says 'error' when it is cut, and 'end' when it is closed. */
function onEnd(client: NodeRedisCommon, end: () => void): void {
  let hasEnded = false
  const look = (): void => {
    if (client.isOpen || hasEnded) return
    hasEnded = true
    end()
  }
  client.on('error', look)
  client.on('end', look)
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
