import type { Script } from './lua/script.js'

/** What this store needs of a Redis client, whichever it is. */
export interface Driver {
  /** Whether a script may only touch the keys of one slot. */
  readonly isCluster: boolean
  /**
   * Of a client that we have opened: resolves when its connection is gone for good. The next call opens another one; a client that tries
   * by itself would keep the process from ending for as long as its server is gone.
   */
  readonly ended?: Promise<void>
  /** How many connections were lost so far. A client may silently send again what was under way then. */
  readonly losses: number
  /** Has every master learn a script, ahead of the calls that follow. What fails here is made up for by `run`. */
  teach(script: Script): Promise<void>
  /** Runs a script on the master that has its keys. */
  run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown>
  /** The same, and then how many replicas have its writes, after `timeoutMs` at the latest. On a connection of its own: WAIT blocks it. */
  runDurably(
    script: Script,
    keys: readonly string[],
    args: readonly string[],
    wanted: Replicas,
  ): Promise<Durable>
  /** The keys that match, in portions, from every master, without blocking any. */
  scan(pattern: string): AsyncIterable<readonly string[]>
  /** Tells a channel, over the connection for commands. */
  publish(channel: string, message: string): Promise<unknown>
  /** Every master, for a look at it. */
  masters(): Promise<readonly Master[]>
  /** Opens one more connection for messages. It does not come back by itself: `onEnd` is called once when it has ended. */
  openEar(handlers: EarHandlers): Promise<Ear>
  /** Closes what this store has opened; never what the user did. */
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

/** A connection that hears messages. */
export interface Ear {
  /** Resolves when the server has confirmed it. */
  subscribe(channels: readonly string[]): Promise<void>
  unsubscribe(channel: string): Promise<void>
  close(): void
}

export interface EarHandlers {
  onMessage(channel: string, message: string): void
  onEnd(): void
}

const counted = new WeakMap<object, { count: number }>()

/** Counts the connections that a client loses. Once for each client: it may be the user's, and many stores may be made of it. */
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

/** Calls a script by its hash, and by its text where the server has forgotten it (restart, fail-over, SCRIPT FLUSH). */
export function byHash<T>(call: () => Promise<T>, withText: () => Promise<T>): Promise<T> {
  return call().catch((error: unknown) => {
    if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
    return withText()
  })
}
