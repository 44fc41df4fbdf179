import type { ConnectionOptions } from 'node:tls'
import type { Cancel, Env } from '../../base/env.js'
import { nothing } from '../../base/nothing.js'
import type { Host } from '../hosts.js'
import { GrpcCall, type GrpcListener } from './call.js'
import { asMaybeDone, EtcdError } from './errors.js'
import { addressOf } from './hosts.js'
import { Http2Connection } from './http2/connection.js'
import { encodeHeaders } from './http2/hpack.js'
import type { StreamFailure } from './http2/stream.js'

interface LinkListener {
  onOpen(): void
  onEnd(reason: EtcdError): void
}

interface EtcdChannelSettings {
  readonly host: Host
  readonly tls: ConnectionOptions | null
  readonly stallTimeoutMs: number
  readonly lastStreamId: number
  readonly env: Env
}

/** How often in a stall timeout the server's silence is checked. */
const CHECKS = 4

/**
 * One HTTP/2 connection to one server. It ends when the server owes an answer and sends nothing,
 * even if the socket stays open.
 */
export class EtcdChannel {
  readonly #connection: Http2Connection
  readonly #settings: EtcdChannelSettings
  readonly #listener: LinkListener
  /** The encoded headers of the calls with `#token`, by their path. */
  readonly #blocks = new Map<string, Buffer>()
  #token: string | null = null
  /** How many answers the server owes. */
  #owed = 0
  /** Checks in a row without a word. Not a time: we may have been paused ourselves. */
  #silentChecks = 0
  #cancelCheck: Cancel = nothing
  #isChecking = false
  /** Why it has ended. */
  #reason: EtcdError | null = null

  constructor(settings: EtcdChannelSettings, listener: LinkListener) {
    this.#settings = settings
    this.#listener = listener
    this.#connection = new Http2Connection(settings, {
      // A connection alone may be a proxy's, with no server behind it.
      onReady: () => this.#onConnect(),
      onSign: () => {
        this.#silentChecks = 0
      },
      onEnd: (what, cause) => this.end(this.#failure(what, cause)),
    })
    this.owe()
  }

  get isEnded(): boolean {
    return this.#reason !== null
  }

  /**
   * Opens a call, for the `only` message or for many. null: the connection has ended, and nothing
   * is sent.
   */
  open(
    path: string,
    token: string | null,
    listener: GrpcListener,
    only: Buffer | null = null,
  ): GrpcCall | null {
    const call = new GrpcCall(this.#connection, listener, this.#describe)
    return call.start(this.#headers(path, token), only) ? call : null
  }

  /** The server owes one more answer. */
  owe(): void {
    if (this.#owed++ === 0) this.#silentChecks = 0
    if (!this.#isChecking) this.#check()
  }

  /** An answer that was owed has come, or does not matter any more. */
  paid(): void {
    this.#owed--
  }

  end(reason: EtcdError): void {
    if (this.#reason) return
    this.#reason = reason
    this.#cancelCheck()
    this.#connection.end(reason.message)
    this.#listener.onEnd(reason)
  }

  #onConnect(): void {
    this.paid()
    this.#listener.onOpen()
  }

  #headers(path: string, token: string | null): Buffer {
    if (token !== this.#token) this.#blocks.clear()
    this.#token = token
    const known = this.#blocks.get(path)
    if (known) return known
    const { host, tls } = this.#settings
    const block = encodeHeaders([
      [':method', 'POST'],
      [':scheme', tls === null ? 'http' : 'https'],
      [':path', path],
      [':authority', addressOf(host)],
      ['content-type', 'application/grpc'],
      ['te', 'trailers'],
      // A server that is cut off from the others says so, and does not keep us waiting.
      ['hasleader', 'true'],
      ...(token === null ? [] : [['token', token] as const]),
    ])
    this.#blocks.set(path, block)
    return block
  }

  /** Runs while answers are owed. */
  #check(): void {
    const { env, stallTimeoutMs } = this.#settings
    this.#isChecking = this.#owed > 0 && !this.isEnded
    if (!this.#isChecking) return
    if (this.#silentChecks++ === CHECKS) {
      this.#isChecking = false
      return this.end(this.#failure(`has not answered for ${stallTimeoutMs} ms`))
    }
    // A server that lives answers a ping, also while it waits for its leader.
    if (this.#silentChecks === CHECKS / 2) this.#connection.ping()
    this.#cancelCheck = env.timer(stallTimeoutMs / CHECKS, () => this.#check(), { keepAlive: true })
  }

  readonly #describe = ({ why, isUntouched }: StreamFailure): EtcdError => {
    const error = this.#reason ? asMaybeDone(this.#reason) : this.#failure(why)
    return isUntouched ? new EtcdError('UNAVAILABLE', error.message, { cause: error }) : error
  }

  #failure(what: string, cause?: Error): EtcdError {
    const because = cause ? `: ${cause.message}` : ''
    const details = { maybeDone: true, ...(cause && { cause }) }
    return new EtcdError(
      'UNAVAILABLE',
      `etcd at ${addressOf(this.#settings.host)} ${what}${because}`,
      details,
    )
  }
}
