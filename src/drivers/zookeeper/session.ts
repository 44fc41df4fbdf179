import type { ConnectionOptions } from 'node:tls'
import { backoffMs } from '../../base/backoff.js'
import { type Cancel, detached, type Env } from '../../base/env.js'
import { Connection, type ConnectionListener } from './connection.js'
import { serverError, ZooKeeperError } from './errors.js'
import { frame } from './frames.js'
import type { HostRing } from './hosts.js'
import { closeSession } from './operations.js'
import { Err, LAST_XID, Op, Xid } from './protocol.js'
import { type ConnectResponse, type ReplyHeader, type WatcherEvent, writeSetWatches } from './records.js'
import { type Exchange, Request } from './request.js'
import { tell } from './tell.js'
import { type WatchEvent, Watches } from './watches.js'

/** News of the session, the same for all who share it. */
export type SessionEvent =
  /** The session is there. */
  | { readonly type: 'connected' }
  /** No answer has come since that monotonic time, though one is due, or the connection broke. The session may live or not. */
  | { readonly type: 'suspected'; readonly since: number }
  /** Answers come again, over the old connection or a new one; the session and its watches are the same. */
  | { readonly type: 'reconnected' }
  /** The server has ended the session, and its ephemeral nodes with it. Make a new client. */
  | { readonly type: 'expired' }
  /** By `close`, or because the server refused the authentication: then with the reason. */
  | { readonly type: 'closed'; readonly reason?: ZooKeeperError }

export type SessionListener = (event: SessionEvent) => void

export interface SessionInfo {
  readonly id: bigint
  readonly password: Buffer
  /** As negotiated: the server may grant more or less than was asked for. */
  readonly timeoutMs: number
}

export interface Credentials {
  /** `digest`, unless the servers know others. */
  readonly scheme: string
  /** For `digest`: `user:password`. */
  readonly credentials: string
}

export interface SessionSettings {
  readonly hosts: HostRing
  readonly tls: ConnectionOptions | null
  readonly auth: readonly Credentials[]
  readonly timeoutMs: number
  readonly closeTimeoutMs: number
  /** Of the servers. */
  readonly tickMs: number
  readonly maxRequests: number
  readonly maxRequestBytes: number
  readonly firstXid: number
  readonly env: Env
}

const FIRST_RETRY_MS = 20
const LONGEST_RETRY_MS = 1000
/** For the few round trips of opening a connection, however short the session. */
const LEAST_OPEN_MS = 100
const NO_SESSION: SessionInfo = { id: 0n, password: Buffer.alloc(16), timeoutMs: 0 }

/** One session over any number of connections, one at a time. Ends when it expires or is closed, and never comes back. */
export class Session implements ConnectionListener {
  readonly watches = new Watches()
  readonly #settings: SessionSettings
  readonly #listeners = new Set<SessionListener>()
  /** Not sent yet, as there is no connection that is ready. */
  readonly #queue = new Set<Request<object>>()
  #info: SessionInfo | null = null
  #connection: Connection | null = null
  #isReady = false
  #isSuspected = false
  #end: ZooKeeperError | null = null
  #closing: Promise<void> | null = null
  #openRequests = 0
  #nextXid: number
  #lastZxid = 0n
  /** Connections in a row that came to nothing. */
  #failures = 0
  #lastFailure: Error | undefined
  #cancelRetry: Cancel = () => {}
  #isRetrying = false

  constructor(settings: SessionSettings) {
    this.#settings = settings
    this.#nextXid = settings.firstXid
  }

  /** null before the first connection. */
  get info(): SessionInfo | null {
    return this.#info
  }

  /** Why there is no connection, or why the last one was of no use. Forgotten at the next answer. */
  get lastFailure(): Error | undefined {
    return this.#lastFailure
  }

  subscribe(listener: SessionListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  submit(request: Request<object>): void {
    const refusal = this.#refusal(request)
    if (refusal) return request.fail(refusal)
    this.#accept(request)
  }

  /** Ends the session, if the server can be reached within the time for it; otherwise it is left to expire. Never fails. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  onOpen({ sessionId, password, timeoutMs }: ConnectResponse): void {
    if (timeoutMs <= 0) return this.#finish({ type: 'expired' })
    this.#info = { id: sessionId, password, timeoutMs }
    this.#authenticate(0)
  }

  onReply({ xid, zxid, error }: ReplyHeader): void {
    // Not at a mere greeting: a server that greets and then hangs up would be called again and again without a pause.
    if (xid !== Xid.auth) {
      this.#failures = 0
      this.#lastFailure = undefined
    }
    if (xid > 0 && zxid > this.#lastZxid) this.#lastZxid = zxid
    if (error === Err.sessionExpired) this.#finish({ type: 'expired' })
  }

  onEvent(event: WatcherEvent): void {
    const fired = this.watches.take(event)
    if (!fired) return
    const news: WatchEvent = { type: fired.type, path: event.path }
    for (const listener of fired.listeners) tell(listener, news)
  }

  onSilence(): void {
    this.#suspect()
  }

  onSpeech(): void {
    this.#trust()
  }

  onEnd(reason: Error): void {
    if (this.#end) return
    if (this.#info) this.#suspect()
    this.#connection = null
    this.#isReady = false
    this.#lastFailure = reason
    this.#connectLater()
  }

  #refusal({ bytes, what }: Request<object>): ZooKeeperError | null {
    const { maxRequests, maxRequestBytes } = this.#settings
    if (this.#end) return this.#end
    if (this.#closing) return new ZooKeeperError('CLOSED', `'${what}' came after close()`)
    if (this.#openRequests >= maxRequests)
      return new ZooKeeperError('QUEUE_FULL', `'${what}' was not sent: ${maxRequests} requests wait already`)
    // The server would cut the connection, and with it the requests of everybody else.
    if (bytes.length > maxRequestBytes)
      return new ZooKeeperError(
        'TOO_LARGE',
        `'${what}' has ${bytes.length} bytes, more than ${maxRequestBytes}`,
      )
    return null
  }

  #accept(request: Request<object>): void {
    const onDeadline = (): void => request.onDeadline(this.#lastFailure)
    const cancel = this.#settings.env.timer(request.timeoutMs, onDeadline, { keepAlive: true })
    this.#openRequests++
    request.onSettled = () => {
      this.#openRequests--
      this.#queue.delete(request)
      cancel()
    }
    if (this.#isReady) return this.#send(request)
    this.#queue.add(request)
    this.#connect()
  }

  #send(request: Request<object>): void {
    if (!this.#connection) return
    const now = this.#settings.env.now()
    request.sending(this.#takeXid(), now, this.#connection.touchedAt(now))
    this.#connection.send(request)
  }

  #takeXid(): number {
    const xid = this.#nextXid
    this.#nextXid = xid === LAST_XID ? 1 : xid + 1
    return xid
  }

  #connect(): void {
    if (this.#connection || this.#isRetrying || this.#end) return
    const { hosts, tls, env, tickMs } = this.#settings
    const { id: sessionId, password } = this.#info ?? NO_SESSION
    const timeoutMs = this.#info?.timeoutMs ?? this.#settings.timeoutMs
    const request = { lastZxid: this.#lastZxid, timeoutMs, sessionId, password }
    // Every server can be asked once while the session lives.
    const openWithinMs = Math.max(timeoutMs / (hosts.size + 1), LEAST_OPEN_MS)
    const settings = { host: hosts.next(), tls, request, openWithinMs, tickMs, env }
    // Outside the flow of whoever happened to ask first: the connection belongs to all.
    try {
      this.#connection = detached(() => new Connection(settings, this))
    } catch (error) {
      // TLS options that make no sense throw at once.
      this.onEnd(error instanceof Error ? error : new Error(String(error)))
    }
  }

  #connectLater(): void {
    const { env, hosts } = this.#settings
    const rounds = Math.floor(this.#failures++ / hosts.size)
    const delayMs = rounds === 0 ? 0 : backoffMs(rounds, env.random(), FIRST_RETRY_MS, LONGEST_RETRY_MS)
    const retry = (): void => {
      this.#isRetrying = false
      this.#connect()
    }
    this.#isRetrying = true
    this.#cancelRetry = env.timer(delayMs, retry, { keepAlive: false })
  }

  /** Before anything else: a request that came first would be judged as a stranger's. */
  #authenticate(index: number): void {
    const credentials = this.#settings.auth[index]
    if (!credentials) return this.#onAuthenticated()
    const onReply = ({ error }: ReplyHeader): void => {
      if (error === 0) return this.#authenticate(index + 1)
      const reason = serverError(error, `the authentication with scheme '${credentials.scheme}'`, {})
      this.#finish({ type: 'closed', reason })
    }
    const sentAt = this.#settings.env.now()
    const bytes = authFrame(credentials)
    this.#connection?.send({ xid: Xid.auth, bytes, sentAt, onReply, onLoss: () => {} })
  }

  #onAuthenticated(): void {
    this.#isReady = true
    for (const exchange of this.#watchExchanges()) this.#connection?.send(exchange)
    for (const request of this.#queue) this.#send(request)
    this.#queue.clear()
    if (this.#isSuspected) this.#trust()
    else this.#emit({ type: 'connected' })
  }

  *#watchExchanges(): Iterable<Exchange> {
    for (const watches of this.watches.toSetAgain(this.#lastZxid)) {
      const xid = this.#takeXid()
      const bytes = frame((out) => writeSetWatches(out.int(xid).int(Op.setWatches), watches))
      yield { xid, bytes, sentAt: this.#settings.env.now(), onReply: () => {}, onLoss: () => {} }
    }
  }

  #suspect(): void {
    if (this.#isSuspected) return
    this.#isSuspected = true
    this.#emit({ type: 'suspected', since: this.#connection?.heardAt ?? this.#settings.env.now() })
  }

  #trust(): void {
    this.#isSuspected = false
    this.#emit({ type: 'reconnected' })
  }

  async #close(): Promise<void> {
    const closed = new ZooKeeperError('CLOSED', 'The client was closed before the request was sent')
    for (const request of this.#queue) request.fail(closed)
    if (this.#info && !this.#end) {
      const what = 'close the session'
      const farewell = new Request(closeSession(), {
        what,
        path: '/',
        timeoutMs: this.#settings.closeTimeoutMs,
      })
      this.#accept(farewell)
      await farewell.promise.catch(() => {})
    }
    this.#finish({ type: 'closed' })
  }

  #finish(event: SessionEvent & { type: 'expired' | 'closed' }): void {
    if (this.#end) return
    this.#end = endError(event)
    this.#cancelRetry()
    for (const request of this.#queue) request.fail(this.#end)
    this.#connection?.end(this.#end)
    this.watches.clear()
    this.#emit(event)
  }

  #emit(event: SessionEvent): void {
    for (const listener of [...this.#listeners]) tell(listener, event)
  }
}

function endError(event: SessionEvent & { type: 'expired' | 'closed' }): ZooKeeperError {
  if (event.type === 'expired')
    return new ZooKeeperError('SESSION_EXPIRED', 'The ZooKeeper session has expired; make a new client')
  return event.reason ?? new ZooKeeperError('CLOSED', 'The ZooKeeper client was closed')
}

function authFrame({ scheme, credentials }: Credentials): Buffer {
  return frame((out) => out.int(Xid.auth).int(Op.auth).int(0).string(scheme).string(credentials))
}
