import type { Env } from '../../base/env.js'
import { HoldfastError } from '../../base/errors.js'
import type { Answer, Connection, Store } from '../../contract/store.js'

/**
 * - `unknown`: not identified yet, or its server may have restarted since
 * - `up`: it votes
 * - `resting`: a call failed or got no answer; it is asked again in the background
 * - `out`: it has lost its data, and votes again when the longest lease is over
 */
export type MemberState = 'unknown' | 'up' | 'resting' | 'out'

export interface MemberContext {
  readonly env: Env
  readonly timeoutMs: number
  /** A call failed or got no answer. */
  onFailure(member: Member): void
}

/** What becomes of a call. */
export interface MemberListener<T> {
  onAnswer(answer: T): void
  onFailure(error: unknown): void
  /** The answer came after the call had failed, or from another run of the server. */
  onLate?(answer: T): void
}

interface PendingCall {
  readonly sentAt: number
  fail(error: HoldfastError): void
}

/** A timer that fires later than this shows that the process stood still. */
const LATE_MS = 50

/** One member of the set, as one client sees it. */
export class Member {
  state: MemberState = 'unknown'
  /** Its identity, the same for all clients; null: not known yet. */
  id: string | null = null
  #seed = 0
  /** Why it does not vote, for messages. */
  failure: unknown = null
  readonly connection: Connection
  readonly #context: MemberContext
  /** In order of sending. */
  readonly #pending = new Set<PendingCall>()
  #heardAt = -Infinity
  #latencyMs = 0
  #isWatching = false
  #identifiedLink: number | undefined

  constructor(
    readonly index: number,
    readonly store: Store,
    context: MemberContext,
    connect: (store: Store) => Connection,
  ) {
    this.#context = context
    this.connection = connect(store)
  }

  /** For messages: `member 2 (redis)`. */
  get label(): string {
    return `member ${this.index + 1} (${this.store.name})`
  }

  /** Whether its answers count: the same run of the server answers that was identified. */
  get isUp(): boolean {
    if (this.state === 'up' && this.connection.origin?.link !== this.#identifiedLink) this.state = 'unknown'
    return this.state === 'up'
  }

  /** It is as it should be, seen over the connection with that link. */
  identified(id: string, link: number | undefined): void {
    this.id = id
    this.#seed = hash(id)
    this.#identifiedLink = link
    this.failure = null
    this.state = 'up'
  }

  /** Its place in an order of the members that all clients share for this resource. */
  rankOf(resource: string): number {
    return hash(resource, this.#seed)
  }

  /** How long its answers take at present, rather the slow ones. */
  get latencyMs(): number {
    return this.#latencyMs
  }

  #noteLatency(ms: number): void {
    this.#latencyMs = Math.max(ms, 0.7 * this.#latencyMs + 0.3 * ms)
  }

  /** When it answered last. */
  get heardAt(): number {
    return this.#heardAt
  }

  /** One call. Fails when the member has been silent for too long. */
  start<T>(send: (connection: Connection) => Answer<T>, listener: MemberListener<T>): void {
    const { env } = this.#context
    const link = this.connection.origin?.link
    const fail = (error: unknown): void => {
      this.#failed(error)
      listener.onFailure(error)
    }
    const pending: PendingCall = { sentAt: env.now(), fail }
    const onAnswer = (answer: T): void => {
      this.#heardAt = env.now()
      this.#noteLatency(this.#heardAt - pending.sentAt)
      if (!this.#pending.delete(pending)) return listener.onLate?.(answer)
      if (link === this.connection.origin?.link) return listener.onAnswer(answer)
      // Another run of the server may have answered: it does not count, and is given back.
      listener.onLate?.(answer)
      fail(this.#unavailable('its connection was lost'))
    }
    const onFailure = (error: unknown): void => {
      if (this.#pending.delete(pending)) fail(error)
    }
    this.#pending.add(pending)
    this.#watch()
    try {
      const answer = send(this.connection)
      if (isPromise(answer)) answer.then(onAnswer, onFailure)
      else onAnswer(answer)
    } catch (error) {
      onFailure(error)
    }
  }

  /** As `start`, with a promise. */
  call<T>(send: (connection: Connection) => Answer<T>, onLate?: (answer: T) => void): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const listener = { onAnswer: resolve, onFailure: reject }
      this.start(send, onLate ? { ...listener, onLate } : listener)
    })
  }

  #failed(error: unknown): void {
    // An answer that refuses the call is an answer.
    if (error instanceof HoldfastError && error.code !== 'STORE_UNAVAILABLE') return
    this.rest(error)
    this.#context.onFailure(this)
  }

  /** It is left alone for a while. */
  rest(failure: unknown): void {
    this.failure = failure
    if (this.state !== 'out') this.state = 'resting'
  }

  /** It has lost its data. */
  leave(failure: unknown): void {
    this.failure = failure
    this.state = 'out'
  }

  /** One timer for all calls: nearly all are answered before it fires. */
  #watch(): void {
    const [oldest] = this.#pending
    if (this.#isWatching || !oldest) return
    this.#isWatching = true
    const { env, timeoutMs } = this.#context
    const dueAt = Math.max(env.now() + 1, this.#silentFrom(oldest) + timeoutMs)
    const look = (): void => {
      this.#isWatching = false
      this.#giveUpSilent()
      this.#watch()
    }
    const onTime = (): void => {
      // This process stood still: answers may be there that were not read yet.
      if (env.now() - dueAt > LATE_MS) env.timer(LATE_MS, look, { keepAlive: false })
      else look()
    }
    env.timer(dueAt - env.now(), onTime, { keepAlive: false })
  }

  /** A member that answers what was sent before is busy, not silent. */
  #silentFrom({ sentAt }: PendingCall): number {
    return Math.max(sentAt, this.#heardAt)
  }

  #giveUpSilent(): void {
    const { env, timeoutMs } = this.#context
    const now = env.now()
    for (const pending of [...this.#pending]) {
      if (this.#silentFrom(pending) + timeoutMs > now) return
      this.#pending.delete(pending)
      pending.fail(this.#unavailable(`no answer within ${Math.round(timeoutMs)} ms`))
    }
  }

  #unavailable(message: string): HoldfastError {
    const trouble = this.connection.trouble?.()
    const text = trouble ? `${message} (${trouble})` : message
    return new HoldfastError('STORE_UNAVAILABLE', text, { store: this.store.name, retryable: true })
  }
}

function isPromise<T>(answer: Answer<T>): answer is Promise<T> {
  return typeof (answer as Partial<Promise<T>> | undefined)?.then === 'function'
}

/** FNV-1a with the final mixing of MurmurHash3, so that similar names get different ranks. */
function hash(text: string, seed = 0x811c9dc5): number {
  let value = seed
  for (let index = 0; index < text.length; index++)
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193)
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35)
  return (value ^ (value >>> 16)) >>> 0
}
