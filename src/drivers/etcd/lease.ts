import type { Cancel, Env } from '../../base/env.js'
import { nothing } from '../../base/nothing.js'
import type { GrpcCall } from './call.js'
import { EtcdError } from './errors.js'
import type { EtcdLink } from './link.js'
import { encode } from './requests.js'
import { type LeaseAnswer, readLease } from './responses.js'

export const GRANT = '/etcdserverpb.Lease/LeaseGrant'
export const REVOKE = '/etcdserverpb.Lease/LeaseRevoke'
const KEEP_ALIVE = '/etcdserverpb.Lease/LeaseKeepAlive'
/** A lease is renewed so many times in its length. */
const RENEWALS = 3
/** Where no transaction is answered, older renewals are of no use. */
const MOST_UNCONFIRMED = 100

interface LeaseSettings {
  readonly link: EtcdLink
  readonly env: Env
  readonly ttlMs: number
  readonly requestTimeoutMs: number
  /** A request that only the true leader can answer. */
  readonly confirm: () => Promise<void>
  readonly onEnd: () => void
  readonly onClosed: (lease: EtcdLease) => void
}

/** An answered renewal. */
interface Renewal {
  readonly sentAt: number
  readonly heardAt: number
  readonly raftTerm: number
}

/**
 * One lease, kept alive in one stream. It is granted at the first `ready()`, and a new one after it
 * has ended.
 */
export class EtcdLease {
  readonly #settings: LeaseSettings
  #id: bigint | null = null
  #granting: Promise<bigint> | null = null
  #ttlMs = 0
  /** The leader counts the length of the lease from this time, or from a later one. */
  #renewedAt = -Infinity
  /** In the order of their answers. */
  #unconfirmed: Renewal[] = []
  #stream: GrpcCall | null = null
  /** The renewals in the stream that have no answer yet, in order. */
  #owed: { readonly sentAt: number; readonly settle: (error?: EtcdError) => void }[] = []
  #cancelTimer: Cancel = nothing
  #cancelDeadline: Cancel | null = null
  #isClosed = false

  constructor(settings: LeaseSettings) {
    this.#settings = settings
  }

  /** null: there is none at the moment. */
  get id(): bigint | null {
    return this.#id
  }

  /** Its length, as the servers set it; before the first grant, as it was asked for. */
  get ttlMs(): number {
    return this.#ttlMs || this.#settings.ttlMs
  }

  /** Until when the servers surely keep it, on our monotonic clock. */
  get validUntil(): number {
    return this.#id === null ? -Infinity : this.#renewedAt + this.#ttlMs
  }

  /** The id of the lease, which is granted first if there is none. */
  ready(): bigint | Promise<bigint> {
    if (this.#id !== null) return this.#id
    this.#granting ??= this.#grant().finally(() => {
      this.#granting = null
    })
    return this.#granting
  }

  /** Renews it. Once this is done, the answer to any later transaction confirms the renewal. */
  async renew(): Promise<void> {
    // A request waits for the connection, if there is none.
    if (!this.#settings.link.isReady) await this.#settings.confirm()
    const id = this.#id
    if (id === null) return
    await new Promise<void>((resolve, reject) => {
      this.#send(id, (error) => (error ? reject(error) : resolve()))
    })
  }

  /**
   * A server of that term has answered a transaction that was sent at `sentAt`. A leader that was
   * deposed while it slept still answers renewals, but no transaction. So a renewal counts from the
   * moment at which the same leader has answered a later transaction.
   */
  confirm(raftTerm: number, sentAt: number): void {
    // Later renewals wait for a later transaction: where they overlap, each confirms some.
    for (let first = this.#unconfirmed[0]; first && first.heardAt <= sentAt; first = this.#unconfirmed[0]) {
      if (raftTerm === first.raftTerm) this.#renewedAt = Math.max(this.#renewedAt, first.sentAt)
      this.#unconfirmed.shift()
    }
  }

  /** A server has said that the lease is no more. */
  lost(id: bigint): void {
    if (this.#id === id) this.#end()
  }

  /** Revokes it. Never fails, and takes no longer than a request. */
  async close(): Promise<void> {
    this.#isClosed = true
    const id = this.#id
    this.#forget()
    if (id !== null) {
      const message = encode((out) => out.int(1, id))
      await this.#settings.link.call(REVOKE, message).catch(nothing)
    }
    this.#settings.onClosed(this)
  }

  async #grant(): Promise<bigint> {
    const { env, link, ttlMs } = this.#settings
    const sentAt = env.now()
    const message = encode((out) => out.int(1, Math.ceil(ttlMs / 1000)))
    const { id, ttlSeconds } = readLease(await link.call(GRANT, message))
    if (this.#isClosed) throw new EtcdError('CLOSED', 'The client was closed')
    this.#id = id
    this.#ttlMs = ttlSeconds * 1000
    // A grant is a transaction of the whole cluster: it needs no confirmation.
    this.#renewedAt = sentAt
    this.#schedule()
    return id
  }

  #schedule(): void {
    this.#cancelTimer()
    const { env, confirm } = this.#settings
    const onTime = (): void => {
      this.#schedule()
      this.renew().then(confirm).catch(nothing)
    }
    this.#cancelTimer = env.timer(this.#ttlMs / RENEWALS, onTime, { keepAlive: false })
  }

  #send(id: bigint, settle: (error?: EtcdError) => void): void {
    const { env, link } = this.#settings
    this.#stream ??= this.#open(id)
    if (!this.#stream) return settle(new EtcdError('UNAVAILABLE', 'The connection to etcd has ended'))
    const pay = link.owe()
    const answered = (error?: EtcdError): void => {
      pay()
      settle(error)
    }
    this.#owed.push({ sentAt: env.now(), settle: answered })
    this.#stream.send(encode((out) => out.int(1, id)))
    this.#setDeadline()
  }

  /**
   * A follower passes renewals on one after the other, and waits for seconds for a leader that
   * stands still, also when there is a new one. A new stream asks that.
   */
  #setDeadline(): void {
    const [oldest] = this.#owed
    if (this.#cancelDeadline || !oldest) return
    const { env, requestTimeoutMs } = this.#settings
    const limitMs = Math.min(requestTimeoutMs, this.#ttlMs / RENEWALS)
    const onTime = (): void => {
      this.#cancelDeadline = null
      const isLate = this.#owed[0] === oldest
      if (isLate) this.#endStream(new EtcdError('DEADLINE_EXCEEDED', `No renewal within ${limitMs} ms`))
      else this.#setDeadline()
    }
    const leftMs = oldest.sentAt + limitMs - env.now()
    this.#cancelDeadline = env.timer(leftMs, onTime, { keepAlive: false })
  }

  #endStream(reason: EtcdError): void {
    this.#stream?.cancel()
    this.#stream = null
    this.#settleAll(reason)
  }

  #open(id: bigint): GrpcCall | null {
    const stream = this.#settings.link.stream(KEEP_ALIVE, {
      onMessage: (message) => this.#onAnswer(readLease(message)),
      onEnd: (error) => {
        if (this.#stream !== stream || this.#id !== id) return
        this.#stream = null
        this.#settleAll(error ?? new EtcdError('UNAVAILABLE', 'etcd ended the renewals'))
      },
    })
    return stream
  }

  #onAnswer({ header, id, ttlSeconds }: LeaseAnswer): void {
    if (id !== this.#id) return
    const renewal = this.#owed.shift()
    if (!renewal) return
    const { sentAt, settle } = renewal
    if (ttlSeconds === 0) {
      settle()
      return this.#end()
    }
    this.#unconfirmed.push({ sentAt, heardAt: this.#settings.env.now(), raftTerm: header.raftTerm })
    if (this.#unconfirmed.length > MOST_UNCONFIRMED) this.#unconfirmed.shift()
    settle()
  }

  #end(): void {
    this.#forget()
    this.#settings.onEnd()
  }

  #forget(): void {
    this.#cancelTimer()
    this.#cancelDeadline?.()
    this.#cancelDeadline = null
    this.#id = null
    this.#renewedAt = -Infinity
    this.#unconfirmed = []
    this.#endStream(new EtcdError('NOT_FOUND', 'The lease has ended'))
  }

  #settleAll(error: EtcdError): void {
    const owed = this.#owed
    this.#owed = []
    for (const { settle } of owed) settle(error)
  }
}
