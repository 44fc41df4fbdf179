import { quietly } from '../../base/quietly.js'
import {
  byHash,
  type Durable,
  followingMoves,
  linksOf,
  lossesOf,
  type Master,
  MasterChanges,
  type MessageConnection,
  type MessageHandlers,
  type RedisDriver,
  type Replicas,
} from './driver.js'
import type { Script } from './lua/script.js'
import { glob } from './names.js'
import {
  type AnyNodeRedis,
  connectOnce,
  destroy,
  isCluster,
  isSentinel,
  masterOf,
  messagesOf,
  type NodeRedisCluster,
  type NodeRedisMulti,
  type NodeRedisSingle,
  onEnd,
  onNodeEnd,
  quieten,
} from './node-redis-client.js'

export { isNodeRedis, type NodeRedisCluster, type NodeRedisSingle } from './node-redis-client.js'

const LOSSES = ['error', 'reconnecting', 'end'] as const
/** Connections that are opened or lost: of a single server, a Sentinel, or a node of a Cluster. */
const LINKS = [
  ...LOSSES,
  'connect',
  'topology-change',
  'node-connect',
  'node-error',
  'node-reconnecting',
  'node-disconnect',
] as const
const KEYS_AT_ONCE = 1000

/** The package `redis`. */
export class NodeRedisDriver implements RedisDriver {
  readonly isCluster: boolean
  readonly mayFailOver: boolean
  readonly ended?: Promise<void>
  readonly #losses: { readonly count: number }
  #durableLosses = 0
  readonly #links: { readonly count: number }
  #durableLinks = 0
  readonly #masterChanges = new MasterChanges()
  readonly #client: AnyNodeRedis
  readonly #ownsClient: boolean
  readonly keyPrefix: string
  #durable: Promise<NodeRedisSingle | NodeRedisCluster> | undefined
  #nextNode = 0
  /** The last call to a Sentinel; it resolves when the next one may be sent. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(client: AnyNodeRedis, ownsClient: boolean) {
    this.#client = client
    this.#ownsClient = ownsClient
    this.isCluster = isCluster(client)
    this.keyPrefix = String(client._keyPrefix ?? '')
    this.mayFailOver = isCluster(client) || isSentinel(client)
    this.#losses = lossesOf(client, LOSSES)
    this.#links = linksOf(client, LINKS)
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

  get links(): number {
    const client = this.#client
    const changes = isCluster(client) ? this.#masterChanges.look(client.masters.map(addressOf)) : 0
    return this.#links.count + this.#durableLinks + changes
  }

  async load(script: Script): Promise<void> {
    try {
      await Promise.all((await this.#masters()).map(async (node) => node.scriptLoad(script.text)))
    } catch {
      // The first call reports it.
    }
  }

  run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    if (!isSentinel(this.#client)) return this.#run(script, keys, args)
    // A call that waits for a connection is overtaken by later ones: claims would not join the line
    // in their order.
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
    const once = async (start: (multi: NodeRedisMulti) => NodeRedisMulti): Promise<Durable> => {
      const [reply, acknowledged] = await start(client.multi(keys[0] ?? ''))
        .wait(wanted.count, Math.ceil(wanted.timeoutMs))
        .execAsPipeline()
      if (reply instanceof Error) throw reply
      return { reply, acknowledged: Number(acknowledged) }
    }
    const slot = { keys: call.keys.slice(0, 1), arguments: [] }
    const run: typeof once = (start) =>
      followingMoves(
        () => once(start),
        () => client.eval('return 1', slot),
      )
    return byHash(
      () => run((multi) => multi.evalSha(script.sha, call)),
      () => run((multi) => multi.eval(script.text, call)),
    )
  }

  async *scan(pattern: string): AsyncIterable<readonly string[]> {
    for (const node of await this.#masters()) {
      for (let cursor = ''; cursor !== '0'; ) {
        const portion = await scanOnce(node, cursor || '0', glob(this.keyPrefix) + pattern)
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
      name: addressOf(node),
      command: async (...words) => (await client.nodeClient(node as never)).sendCommand(words),
    }))
  }

  async openMessages(handlers: MessageHandlers): Promise<MessageConnection> {
    const { signal } = handlers
    const copy = connectOnce(await this.#someNode())
    signal.throwIfAborted()
    signal.addEventListener('abort', () => quietly(() => destroy(copy)))
    onEnd(copy, handlers.onEnd)
    await copy.connect()
    return messagesOf(copy, handlers)
  }

  async close(): Promise<void> {
    const durable = this.#durable
    this.#durable = undefined
    void durable?.then(destroy).catch(() => {})
    if (this.#ownsClient) destroy(this.#client)
  }

  async #masters(): Promise<NodeRedisSingle[]> {
    const client = this.#client
    if (isSentinel(client)) return [await masterOf(client)]
    if (!isCluster(client)) return [client]
    return Promise.all(client.masters.map(async (node) => client.nodeClient(node as never)))
  }

  /**
   * Every node of a Cluster gets all messages. Another one is taken each time, since the last may
   * be down.
   */
  async #someNode(): Promise<NodeRedisSingle> {
    const client = this.#client
    if (isSentinel(client)) return masterOf(client)
    if (!isCluster(client)) return client
    const node = client.masters[this.#nextNode++ % Math.max(1, client.masters.length)]
    if (!node) throw new Error('No node of the Cluster is known yet')
    return client.nodeClient(node as never)
  }

  /** For WAIT, which blocks its connection. The next call opens another one when this is lost. */
  async #duplicate(): Promise<NodeRedisSingle | NodeRedisCluster> {
    const client = this.#client
    // A Sentinel client puts its prefix before keys itself; the client of its master has none.
    const overrides = isSentinel(client) ? { keyPrefix: this.keyPrefix } : {}
    const copy = isCluster(client) ? client.duplicate() : connectOnce(await this.#someNode(), overrides)
    for (const event of LOSSES) copy.on(event, () => this.#durableLosses++)
    for (const event of LINKS) copy.on(event, () => this.#durableLinks++)
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

function addressOf({ address }: { readonly address?: string }): string {
  return address ?? 'a node'
}

async function scanOnce(
  node: NodeRedisSingle,
  cursor: string,
  pattern: string,
): Promise<{ cursor: string; keys: string[] }> {
  const found = await node.scan(cursor, { MATCH: pattern, COUNT: KEYS_AT_ONCE })
  return { cursor: String(found.cursor), keys: found.keys.map(String) }
}
