import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type SecureClientSessionOptions,
} from 'node:http2'
import type { Cancel, Env } from '../../base/env.js'
import { nothing } from '../../base/nothing.js'
import type { Host } from '../hosts.js'
import { decodeStatusMessage, EtcdError, errorOfStatus } from './errors.js'
import { grpcFrame, MessageSplitter } from './frames.js'
import { addressOf } from './hosts.js'

/** What becomes of a call. */
export interface GrpcListener {
  onMessage(message: Buffer): void
  /** Once. null: it ended well. */
  onEnd(error: EtcdError | null): void
}

/** A call that is under way. */
export interface GrpcCall {
  /** `isLast`: no message follows. */
  send(message: Buffer, isLast?: boolean): void
  /** Ends it; its listener hears nothing more. */
  cancel(): void
}

interface LinkListener {
  onOpen(): void
  onEnd(reason: EtcdError): void
}

interface EtcdChannelSettings {
  readonly host: Host
  readonly tls: SecureClientSessionOptions | null
  readonly stallTimeoutMs: number
  readonly env: Env
}

/** Enough for a long line in one answer, without a round trip in between. */
const WINDOW_BYTES = 8 * 1024 * 1024
/** How often in a stall timeout the server's silence is checked. */
const CHECKS = 4

/**
 * One HTTP/2 connection to one server. It ends when the server owes an answer and sends nothing,
 * even if the socket stays open.
 */
export class EtcdChannel {
  readonly #session: ClientHttp2Session
  readonly #settings: EtcdChannelSettings
  readonly #listener: LinkListener
  /** How many answers the server owes. */
  #owed = 0
  /** Checks in a row without a word. Not a time: we may have been paused ourselves. */
  #silentChecks = 0
  #cancelCheck: Cancel = nothing
  #isChecking = false
  #isEnded = false

  constructor(settings: EtcdChannelSettings, listener: LinkListener) {
    const { host, tls } = settings
    this.#settings = settings
    this.#listener = listener
    const scheme = tls === null ? 'http' : 'https'
    this.#session = connect(`${scheme}://${addressOf(host)}`, {
      ...tls,
      settings: { initialWindowSize: WINDOW_BYTES, enablePush: false },
    })
    // The first word of the server. A connection alone may be a proxy's, with no server behind it.
    this.#session.once('remoteSettings', () => this.#onConnect())
    this.#session.on('error', (error) => this.end(this.#failure('cannot be reached', error)))
    this.#session.on('goaway', () => this.end(this.#failure('ended the connection')))
    this.#session.on('close', () => this.end(this.#failure('closed the connection')))
    // A call that waits keeps the process alive by its timer; an idle connection must not.
    this.#session.unref()
    this.owe()
  }

  get isEnded(): boolean {
    return this.#isEnded
  }

  /**
   * Opens a call, for one message or for many. null: the connection has ended, and nothing is sent.
   */
  open(path: string, token: string | null, listener: GrpcListener): GrpcCall | null {
    // The session knows that before its events tell us, and refuses requests from then on.
    if (this.#session.closed || this.#session.destroyed) this.end(this.#failure('ended the connection'))
    if (this.#isEnded) return null
    const headers = {
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
      // A server that is cut off from the others says so, and does not keep us waiting.
      hasleader: 'true',
      ...(token !== null && { token }),
    }
    const stream = this.#session.request(headers)
    return this.#follow(stream, listener)
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
    if (this.#isEnded) return
    this.#isEnded = true
    this.#cancelCheck()
    this.#session.destroy()
    this.#listener.onEnd(reason)
  }

  #onConnect(): void {
    // The event may be older than the end of the session.
    if (this.#isEnded || this.#session.destroyed) return
    this.#session.setLocalWindowSize(WINDOW_BYTES)
    this.#hear()
    this.paid()
    this.#listener.onOpen()
  }

  #follow(stream: ClientHttp2Stream, listener: GrpcListener): GrpcCall {
    const splitter = new MessageSplitter()
    let isOver = false
    let cause: Error | undefined
    const finish = (error: EtcdError | null): void => {
      if (isOver) return
      isOver = true
      listener.onEnd(error)
    }
    const onTrailers = (headers: Record<string, unknown>): void => {
      const status = headers['grpc-status']
      if (status === undefined) return
      const message = decodeStatusMessage(String(headers['grpc-message'] ?? ''))
      finish(status === '0' ? null : errorOfStatus(Number(status), message))
    }
    stream.on('response', (headers) => {
      this.#hear()
      onTrailers(headers)
    })
    stream.on('data', (chunk: Buffer) => {
      this.#hear()
      for (const message of splitter.push(chunk)) if (!isOver) listener.onMessage(message)
    })
    stream.on('trailers', onTrailers)
    stream.on('error', (error: Error & { code?: string }) => {
      cause = error
      // The numbers of a connection's streams run out after a billion calls.
      if (error.code === 'ERR_HTTP2_OUT_OF_STREAMS') this.end(this.#failure('needs a new connection', error))
    })
    stream.on('close', () => finish(this.#failure('ended the call without an answer', cause)))
    const send = (message: Buffer, isLast = false): void => {
      if (stream.destroyed) return
      if (isLast) stream.end(grpcFrame(message))
      else stream.write(grpcFrame(message))
    }
    const cancel = (): void => {
      isOver = true
      stream.close()
    }
    return { send, cancel }
  }

  #hear(): void {
    this.#silentChecks = 0
  }

  /** Runs while answers are owed. */
  #check(): void {
    const { env, stallTimeoutMs } = this.#settings
    this.#isChecking = this.#owed > 0 && !this.#isEnded
    if (!this.#isChecking) return
    if (this.#silentChecks++ === CHECKS) {
      this.#isChecking = false
      return this.end(this.#failure(`has not answered for ${stallTimeoutMs} ms`))
    }
    // A server that lives answers a ping, also while it waits for its leader.
    if (this.#silentChecks === CHECKS / 2 && !this.#session.connecting) this.#ping()
    this.#cancelCheck = env.timer(stallTimeoutMs / CHECKS, () => this.#check(), { keepAlive: true })
  }

  #ping(): void {
    if (this.#session.destroyed) return
    this.#session.ping((error) => {
      if (!error) this.#hear()
    })
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
