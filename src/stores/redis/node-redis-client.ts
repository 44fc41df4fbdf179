import { HoldfastError } from '../../base/errors.js'
import { quietly } from '../../base/quietly.js'
import type { MessageConnection, MessageHandlers } from './driver.js'

interface ScriptCall {
  keys: string[]
  arguments: string[]
}

/** The part of node-redis (`redis` 5, 6) that a client, a Cluster and a Sentinel share. */
export interface NodeRedisCommon {
  evalSha(sha: string, call: ScriptCall): Promise<unknown>
  eval(text: string, call: ScriptCall): Promise<unknown>
  on(event: string, listener: (...args: never[]) => void): unknown
  connect(): Promise<unknown>
  publish(channel: string, message: string): Promise<unknown>
  destroy(): void
  subscribe(channels: string[], listener: (message: unknown, channel: unknown) => void): Promise<unknown>
  unsubscribe(channel: string): Promise<unknown>
  readonly isOpen: boolean
  /** The prefix that it puts before keys, but not before patterns; since 6.3, not documented. */
  readonly _keyPrefix?: unknown
}

/** A client of one server. */
export interface NodeRedisSingle extends NodeRedisCommon {
  scan(
    cursor: string,
    options: { MATCH: string; COUNT: number },
  ): Promise<{ cursor: unknown; keys: unknown[] }>
  scriptLoad(text: string): Promise<unknown>
  multi(): NodeRedisMulti
  duplicate(overrides?: object): NodeRedisSingle
  sendCommand(words: string[]): Promise<unknown>
  unref(): void
  readonly options?: { readonly socket?: object }
}

interface NodeRedisNode {
  readonly client?: NodeRedisSingle | undefined
  readonly address?: string
}

export interface NodeRedisCluster extends NodeRedisCommon {
  readonly masters: readonly NodeRedisNode[]
  readonly replicas: readonly NodeRedisNode[]
  nodeClient(node: never): NodeRedisSingle | Promise<NodeRedisSingle>
  multi(routing: string): NodeRedisMulti
  duplicate(overrides?: object): NodeRedisCluster
}

export interface NodeRedisSentinel extends NodeRedisCommon {
  getMasterNode(): unknown
  /**
   * Not documented, but the only way to the client of the present master with all its settings. In
   * 5 and 6.
   */
  _execute<T>(isReadonly: boolean, work: (master: NodeRedisSingle) => Promise<T>): Promise<T>
}

export interface NodeRedisMulti {
  evalSha(sha: string, call: ScriptCall): NodeRedisMulti
  eval(text: string, call: ScriptCall): NodeRedisMulti
  wait(count: number, timeoutMs: number): NodeRedisMulti
  execAsPipeline(): Promise<unknown[]>
}

export type AnyNodeRedis = NodeRedisSingle | NodeRedisCluster | NodeRedisSentinel

export function isNodeRedis(client: object): client is AnyNodeRedis {
  return ['evalSha', 'duplicate', 'subscribe', 'destroy'].every(
    (method) => typeof (client as Record<string, unknown>)[method] === 'function',
  )
}

export function isCluster(client: AnyNodeRedis): client is NodeRedisCluster {
  return typeof (client as Partial<NodeRedisCluster>).nodeClient === 'function'
}

export function isSentinel(client: AnyNodeRedis): client is NodeRedisSentinel {
  return typeof (client as Partial<NodeRedisSentinel>).getMasterNode === 'function'
}

/** A node that has stopped to reconnect stays lost as long as its Cluster is open. */
export function onNodeEnd(cluster: NodeRedisCluster, end: () => void): void {
  cluster.on('node-error', () => {
    if (cluster.masters.some(({ client }) => client?.isOpen === false)) end()
  })
}

export function messagesOf(client: NodeRedisCommon, { onMessage }: MessageHandlers): MessageConnection {
  const receive = (message: unknown, channel: unknown): void => onMessage(String(channel), String(message))
  return {
    subscribe: async (channels) => void (await client.subscribe([...channels], receive)),
    unsubscribe: async (channel) => void (await client.unsubscribe(channel)),
    close: () => quietly(() => destroy(client)),
  }
}

export async function masterOf(sentinel: NodeRedisSentinel): Promise<NodeRedisSingle> {
  if (typeof sentinel._execute !== 'function')
    throw new HoldfastError(
      'UNSUPPORTED',
      "This version of redis hides its Sentinel's master; give a URL (redis+sentinel://…) instead",
      { store: 'redis' },
    )
  return sentinel._execute(false, async (master) => master)
}

/** One more connection, which does not reconnect: its user has to know that it was lost. */
export function connectOnce(client: NodeRedisSingle, overrides: object = {}): NodeRedisSingle {
  const copy = client.duplicate({
    ...overrides,
    socket: { ...client.options?.socket, reconnectStrategy: false },
    disableOfflineQueue: true,
  })
  quieten(copy)
  return copy
}

/** A client that does not reconnect emits 'error' when it is cut, and 'end' when it is closed. */
export function onEnd(client: NodeRedisCommon, end: () => void): void {
  let hasEnded = false
  const check = (): void => {
    if (client.isOpen || hasEnded) return
    hasEnded = true
    end()
  }
  client.on('error', check)
  client.on('end', check)
}

/**
 * For a client that we have opened: the calls that fail report its errors, and it does not keep the
 * process alive.
 */
export function quieten(client: AnyNodeRedis): void {
  client.on('error', () => {})
  if (isCluster(client)) client.on('node-ready', () => unrefNodes(client))
  else if (!isSentinel(client)) client.on('connect', () => client.unref())
}

function unrefNodes(cluster: NodeRedisCluster): void {
  for (const { client } of [...cluster.masters, ...cluster.replicas]) client?.unref()
}

export function destroy(client: NodeRedisCommon): void {
  if (client.isOpen) client.destroy()
}
