import type { Script } from './lua/script.js'

/** What this store needs of a Redis client, of any package. */
export interface RedisDriver {
  /** Whether a script may only touch the keys of one slot. */
  readonly isCluster: boolean
  /**
   * Of a client that we have opened: resolves when its connection is lost. The next call opens
   * another client, since one that reconnects by itself would keep the process alive while its
   * server is down.
   */
  readonly ended?: Promise<void>
  /**
   * How many connections were lost so far. A client may silently send unanswered commands again.
   */
  readonly losses: number
  /**
   * Loads a script on every master, ahead of the calls that follow. `run` makes up for a failure.
   */
  load(script: Script): Promise<void>
  /** Runs a script on the master that has its keys. */
  run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown>
  /**
   * The same, followed by WAIT, which takes at most `timeoutMs`. On a connection of its own,
   * because WAIT blocks it.
   */
  runDurably(
    script: Script,
    keys: readonly string[],
    args: readonly string[],
    wanted: Replicas,
  ): Promise<Durable>
  /** The matching keys of every master, in portions. */
  scan(pattern: string): AsyncIterable<readonly string[]>
  /** Publishes over the connection for commands. */
  publish(channel: string, message: string): Promise<unknown>
  /** Every master, for `locks.check()`. */
  masters(): Promise<readonly Master[]>
  /**
   * Opens a connection for messages. It does not reconnect: `onEnd` is called once when it is lost.
   */
  openMessages(handlers: MessageHandlers): Promise<MessageConnection>
  /** Closes what this store has opened, and not the user's client. */
  close(): Promise<void>
}

export interface Durable {
  readonly reply: unknown
  /** How many replicas have the writes. */
  readonly acknowledged: number
}

export interface Master {
  /** Its address in a Cluster; null where there is only one. */
  readonly name: string | null
  command(name: string, ...args: string[]): Promise<unknown>
}

export interface Replicas {
  readonly count: number
  readonly timeoutMs: number
}

/** A connection that receives messages. */
export interface MessageConnection {
  /** Resolves when the server has confirmed it. */
  subscribe(channels: readonly string[]): Promise<void>
  unsubscribe(channel: string): Promise<void>
  close(): void
}

export interface MessageHandlers {
  onMessage(channel: string, message: string): void
  onEnd(): void
}

const counted = new WeakMap<object, { count: number }>()

/**
 * Counts the connections that a client loses. Listens once for each client: the user may make many
 * stores of one client.
 */
export function lossesOf(
  client: { on(event: string, listener: () => void): unknown },
  events: readonly string[],
): { readonly count: number } {
  const known = counted.get(client)
  if (known) return known
  const losses = { count: 0 }
  counted.set(client, losses)
  for (const event of events) client.on(event, () => losses.count++)
  return losses
}

/**
 * Calls a script by its hash, and by its text where the server has forgotten it (restart,
 * fail-over, SCRIPT FLUSH).
 */
export async function byHash<T>(call: () => Promise<T>, withText: () => Promise<T>): Promise<T> {
  // A client of the caller's may throw, or return no promise.
  try {
    return await call()
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
    return withText()
  }
}
