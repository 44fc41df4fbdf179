import type { Script } from './lua/script.js'

/** What this store needs of a Redis client, of any package. */
export interface RedisDriver {
  /** Whether a script may only touch the keys of one slot. */
  readonly isCluster: boolean
  /** What the client itself puts before every key. */
  readonly keyPrefix: string
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
   * Grows whenever a later command may be answered by another server than the last one, or by the
   * same server after a restart: how many connections for commands were opened or lost so far.
   */
  readonly links: number
  /** Whether another server may take the place of a master. */
  readonly mayFailOver: boolean
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
  /** Gives the connection up, also while it is being opened. */
  readonly signal: AbortSignal
}

interface EventCount {
  readonly count: number
}

interface Emitting {
  on(event: string, listener: () => void): unknown
}

const losses = new WeakMap<object, EventCount>()
const links = new WeakMap<object, EventCount>()

/** Counts the connections that a client loses. */
export function lossesOf(client: Emitting, events: readonly string[]): EventCount {
  return countedOnce(losses, client, events)
}

/** Counts the connections that a client opens or loses. */
export function linksOf(client: Emitting, events: readonly string[]): EventCount {
  return countedOnce(links, client, events)
}

/** Listens once for each client: the user may make many stores of one client. */
function countedOnce(
  counts: WeakMap<object, EventCount>,
  client: Emitting,
  events: readonly string[],
): EventCount {
  const known = counts.get(client)
  if (known) return known
  const counted = { count: 0 }
  counts.set(client, counted)
  for (const event of events) client.on(event, () => counted.count++)
  return counted
}

/** Counts how often the masters of a Cluster have changed, as far as they were looked at. */
export class MasterChanges {
  #seen = ''
  #count = 0

  look(addresses: readonly string[]): number {
    const now = addresses.toSorted().join(' ')
    if (now !== this.#seen) this.#count++
    this.#seen = now
    return this.#count
  }
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

/**
 * A pipeline does not follow a slot that has moved. `ordinary`, a plain command for the same key,
 * does, and updates the client's map of the Cluster: then the call is made again.
 */
export async function followingMoves<T>(
  call: () => Promise<T>,
  ordinary: () => Promise<unknown>,
): Promise<T> {
  try {
    return await call()
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith('MOVED')) throw error
    await ordinary()
    return call()
  }
}
