import type { Env } from '../../base/env.js'
import {
  MemcachedError,
  type MemcachedServer,
  type MetaListener,
  type MetaReply,
} from '../../drivers/memcached/index.js'
import { explain } from './failures.js'
import { ServerClock } from './server-clock.js'

/** Beside its value, an item has its key and the server's header. */
const HEADER_BYTES = 512
const DEFAULT_ITEM_BYTES = 1_048_576
const ASK_TIME_EVERY_MS = 60_000
/** Longer times are taken for dates. */
const LONGEST_TTL_S = 2_592_000

/** What a compare-and-set expects: the CAS number that was read, or 0 where there was no item. */
export type Expected = number

/** One server, with what has to be known of it before the first write. */
export class MemcachedNode {
  readonly server: MemcachedServer
  readonly #env: Env
  /** A clock other than the server's, in tests. */
  readonly #testClock: Env | null
  readonly #clock: ServerClock
  /** Counts the connections: what was read through an earlier one may be of an earlier run. */
  epoch = 0
  mostBytes = DEFAULT_ITEM_BYTES - HEADER_BYTES
  #readyEpoch = -1
  #preparing: Promise<void> | undefined

  constructor(makeServer: (onLoss: () => void) => MemcachedServer, env: Env, testClock: Env | null) {
    this.#env = env
    this.#testClock = testClock
    this.#clock = new ServerClock(env)
    this.server = makeServer(() => {
      this.epoch++
    })
  }

  get isReady(): boolean {
    return this.#readyEpoch === this.epoch && !this.#clock.hasMoved
  }

  /** Learns the server's time and limits: for each connection, and after this machine slept. */
  ready(): Promise<void> {
    this.#preparing ??= this.#prepare().finally(() => {
      this.#preparing = undefined
    })
    return this.#preparing
  }

  /** The server's time in milliseconds. */
  now(): number {
    if (this.#testClock) return this.#testClock.wallMs()
    const now = this.#env.now()
    if (now - this.#clock.askedAt > ASK_TIME_EVERY_MS && this.isReady) {
      this.#clock.askedAt = now
      // A failure shows in the calls that somebody waits for.
      this.#askTime().catch(() => {})
    }
    return this.#clock.at(now)
  }

  /** `mg` with these flags. */
  get(key: string, flags: string): Promise<MetaReply> {
    return this.server.meta(`mg ${key} ${flags}\r\n`)
  }

  /**
   * Compare-and-set of an ASCII value. Resolves with the new CAS number, or 0 where another client
   * came between.
   */
  set(key: string, value: string, expected: Expected, ttlMs: number | null): Promise<number> {
    return this.server.meta(setCommand(key, value, expected, ttlMs)).then(newCas)
  }

  /** As `set`. The listener gives the reply to `newCas`. */
  send(key: string, value: string, expected: Expected, ttlMs: number | null, listener: MetaListener): void {
    this.server.send(setCommand(key, value, expected, ttlMs), listener)
  }

  async #prepare(): Promise<void> {
    const { epoch } = this
    try {
      const [, settings] = await Promise.all([this.#askTime(), this.server.stats('settings')])
      const itemBytes = Number(settings.get('item_size_max') ?? DEFAULT_ITEM_BYTES)
      this.mostBytes = itemBytes - HEADER_BYTES
      this.#readyEpoch = epoch
    } catch (error) {
      throw explain(error)
    }
  }

  async #askTime(): Promise<void> {
    const sentAt = this.#env.now()
    const seconds = Number((await this.server.stats()).get('time'))
    this.#clock.set(seconds, sentAt, this.#env.now())
  }
}

/** What a write has led to: the new CAS number, or 0 where another client came between. */
export function newCas({ status, cas }: MetaReply): number {
  if (status === 'HD') return cas
  if (status === 'EX' || status === 'NF' || status === 'NS') return 0
  throw explain(new MemcachedError('REFUSED', `an unknown answer to a write: ${status}`))
}

function setCommand(key: string, value: string, expected: Expected, ttlMs: number | null): string {
  const condition = expected === 0 ? 'ME' : `C${expected}`
  return `ms ${key} ${value.length} ${condition} T${ttlSeconds(ttlMs)} c\r\n${value}\r\n`
}

function ttlSeconds(ttlMs: number | null): number {
  const seconds = ttlMs === null ? 0 : Math.max(1, Math.ceil(ttlMs / 1000))
  return seconds > LONGEST_TTL_S ? 0 : seconds
}
