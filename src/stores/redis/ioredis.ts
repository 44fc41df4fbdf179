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

/** The part of ioredis (5, 6) and iovalkey that is used: a single server or Sentinel. */
export interface IoredisClient {
  evalsha(sha: string, keyCount: number, ...rest: string[]): Promise<unknown>
  eval(text: string, keyCount: number, ...rest: string[]): Promise<unknown>
  script(load: 'LOAD', text: string): Promise<unknown>
  pipeline(): IoredisPipeline
  scan(
    cursor: string,
    match: 'MATCH',
    pattern: string,
    count: 'COUNT',
    number: number,
  ): Promise<[string, string[]]>
  call(command: string, ...args: string[]): Promise<unknown>
  publish(channel: string, message: string): Promise<unknown>
  subscribe(...channels: string[]): Promise<unknown>
  unsubscribe(...channels: string[]): Promise<unknown>
  duplicate(overrides?: object): IoredisClient
  connect(): Promise<unknown>
  disconnect(): void
  readonly status: string
  on(event: string, listener: (...args: never[]) => void): unknown
  readonly options: {
    readonly keyPrefix?: string | undefined
    readonly host?: string | undefined
    readonly port?: number | undefined
    readonly sentinels?: unknown
  }
}

/** The part of a Cluster of ioredis and iovalkey that is used. */
export interface IoredisCluster extends Omit<IoredisClient, 'duplicate' | 'scan' | 'options'> {
  nodes(role: 'master'): IoredisClient[]
  duplicate(nodes?: never, overrides?: object): IoredisCluster
  readonly options: { readonly keyPrefix?: string | undefined }
}

interface IoredisPipeline {
  evalsha(sha: string, keyCount: number, ...rest: string[]): IoredisPipeline
  eval(text: string, keyCount: number, ...rest: string[]): IoredisPipeline
  call(command: string, ...args: string[]): IoredisPipeline
  exec(): Promise<[Error | null, unknown][] | null>
}

/** The events that may mean a lost connection, of a single server and of a node of a Cluster. */
const LOSSES = ['close', '-node', 'node error'] as const
/** The same for connections that are opened or lost. A node of a Cluster connects once. */
const LINKS = ['connect', 'close', '+node', '-node'] as const
const KEYS_AT_ONCE = 1000
/**
 * How long a disconnect waits for the server. The default, 2 s, is a timer that keeps the process
 * alive.
 */
export const DISCONNECT_WITHIN_MS = 10

/**
 * Nothing is queued or retried, since the engine does that, and a lost connection is not opened
 * again.
 */
const CONNECT_ONCE = {
  lazyConnect: true,
  retryStrategy: null,
  enableReadyCheck: false,
  maxRetriesPerRequest: 0,
  disconnectTimeout: DISCONNECT_WITHIN_MS,
}
const MESSAGE_OPTIONS = { ...CONNECT_ONCE, autoResubscribe: false, keyPrefix: '' }

export function isIoredis(client: object): client is IoredisClient | IoredisCluster {
  return ['evalsha', 'pipeline', 'duplicate', 'subscribe', 'disconnect'].every(
    (method) => typeof (client as Record<string, unknown>)[method] === 'function',
  )
}

function isCluster(client: IoredisClient | IoredisCluster): client is IoredisCluster {
  return typeof (client as { nodes?: unknown }).nodes === 'function'
}

/** ioredis and iovalkey, which have the same interface. */
export class IoredisDriver implements RedisDriver {
  readonly isCluster: boolean
  readonly mayFailOver: boolean
  readonly ended?: Promise<void>
  readonly #losses: { readonly count: number }
  #durableLosses = 0
  readonly #links: { readonly count: number }
  #durableLinks = 0
  readonly #masterChanges = new MasterChanges()
  readonly #client: IoredisClient | IoredisCluster
  readonly #ownsClient: boolean
  readonly keyPrefix: string
  #durable: Promise<IoredisClient | IoredisCluster> | undefined
  #nextNode = 0

  constructor(client: IoredisClient | IoredisCluster, ownsClient: boolean) {
    this.#client = client
    this.#ownsClient = ownsClient
    this.isCluster = isCluster(client)
    this.keyPrefix = client.options.keyPrefix ?? ''
    this.mayFailOver = isCluster(client) || Boolean(client.options.sentinels)
    this.#losses = lossesOf(client, LOSSES)
    this.#links = linksOf(client, LINKS)
    if (!ownsClient) return
    quieten(client)
    this.ended = new Promise((resolve) => client.on('end', resolve))
  }

  get losses(): number {
    return this.#losses.count + this.#durableLosses
  }

  get links(): number {
    const changes = this.isCluster ? this.#masterChanges.look(this.#masters().map(addressOf)) : 0
    return this.#links.count + this.#durableLinks + changes
  }

  async load(script: Script): Promise<void> {
    try {
      await Promise.all(this.#masters().map(async (node) => node.script('LOAD', script.text)))
    } catch {
      // The first call reports it.
    }
  }

  run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    const client = this.#client
    return byHash(
      () => client.evalsha(script.sha, keys.length, ...keys, ...args),
      () => client.eval(script.text, keys.length, ...keys, ...args),
    )
  }

  async runDurably(script: Script, keys: readonly string[], args: readonly string[], wanted: Replicas) {
    this.#durable ??= this.#duplicate()
    const client = await this.#durable
    const wait = [String(wanted.count), String(Math.ceil(wanted.timeoutMs))]
    const once = async (start: (pipeline: IoredisPipeline) => IoredisPipeline): Promise<Durable> => {
      const [script, acknowledged] =
        (await start(client.pipeline())
          .call('WAIT', ...wait)
          .exec()) ?? []
      const error = script?.[0] ?? acknowledged?.[0]
      if (error) throw error
      return { reply: script?.[1], acknowledged: Number(acknowledged?.[1]) }
    }
    const run: typeof once = (start) =>
      followingMoves(
        () => once(start),
        () => client.eval('return 1', 1, keys[0] ?? ''),
      )
    return byHash(
      () => run((pipeline) => pipeline.evalsha(script.sha, keys.length, ...keys, ...args)),
      () => run((pipeline) => pipeline.eval(script.text, keys.length, ...keys, ...args)),
    )
  }

  async *scan(pattern: string): AsyncIterable<readonly string[]> {
    const prefix = this.keyPrefix
    for (const node of this.#masters()) {
      let cursor = '0'
      do {
        // The client puts its own prefix before keys, but not before patterns, and replies carry
        // it.
        const found = await node.scan(cursor, 'MATCH', glob(prefix) + pattern, 'COUNT', KEYS_AT_ONCE)
        cursor = String(found[0])
        yield found[1].map((key) => String(key).slice(prefix.length))
      } while (cursor !== '0')
    }
  }

  async masters(): Promise<readonly Master[]> {
    return this.#masters().map((node) => ({
      name: this.isCluster ? addressOf(node) : null,
      command: (command, ...args) => node.call(command, ...args),
    }))
  }

  async openMessages({ onMessage, onEnd, signal }: MessageHandlers): Promise<MessageConnection> {
    const copy = this.#someNode().duplicate(MESSAGE_OPTIONS)
    quieten(copy)
    copy.on('message', (channel: unknown, message: unknown) => onMessage(String(channel), String(message)))
    copy.on('end', onEnd)
    const close = (): void => quietly(() => copy.disconnect())
    signal.addEventListener('abort', close)
    await copy.connect()
    return {
      subscribe: async (channels) => void (await copy.subscribe(...channels)),
      unsubscribe: async (channel) => void (await copy.unsubscribe(channel)),
      close,
    }
  }

  async close(): Promise<void> {
    void this.#durable?.then((copy) => copy.disconnect()).catch(() => {})
    if (this.#ownsClient) this.#client.disconnect()
  }

  /**
   * Every node of a Cluster gets all messages. Another one is taken each time, since the last may
   * be down.
   */
  #someNode(): IoredisClient {
    const nodes = this.#masters()
    const node = nodes[this.#nextNode++ % Math.max(1, nodes.length)]
    if (!node) throw new Error('No node of the Cluster is known yet')
    return node
  }

  #masters(): IoredisClient[] {
    return isCluster(this.#client) ? this.#client.nodes('master') : [this.#client]
  }

  /** For WAIT, which blocks its connection. The next call opens another one when this is lost. */
  async #duplicate(): Promise<IoredisClient | IoredisCluster> {
    const copy = isCluster(this.#client) ? this.#client.duplicate() : this.#client.duplicate(CONNECT_ONCE)
    for (const event of LOSSES) copy.on(event, () => this.#durableLosses++)
    for (const event of LINKS) copy.on(event, () => this.#durableLinks++)
    quieten(copy)
    const forget = (): void => {
      this.#durable = undefined
    }
    copy.on('end', forget)
    try {
      // Another status means that it connects by itself.
      if (copy.status === 'wait') await copy.connect()
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

function addressOf({ options }: IoredisClient): string {
  return `${options.host}:${options.port}`
}

/**
 * For a client that we have opened: the calls that fail report its errors, and it does not keep the
 * process alive.
 */
function quieten(client: IoredisClient | IoredisCluster): void {
  const unref = (): void => (client as { stream?: { unref?(): void } }).stream?.unref?.()
  client.on('error', () => {})
  client.on('connect', unref)
  client.on('+node', (node: IoredisClient) => quieten(node))
}
