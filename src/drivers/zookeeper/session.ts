import type { ConnectionListener } from './connection.js'
import { Connector, type ConnectorSettings } from './connector.js'
import { serverError, ZooKeeperError } from './errors.js'
import type { Credentials, SessionEvent, SessionInfo, SessionListener } from './events.js'
import { frame } from './frames.js'
import { closeSession } from './operations.js'
import { Err, Op, Xid } from './protocol.js'
import { type ConnectResponse, type ReplyHeader, type WatcherEvent, writeSetWatches } from './records.js'
import { type Exchange, PendingRequest } from './request.js'
import { type RequestLimits, RequestQueue } from './request-queue.js'
import { tell } from './tell.js'
import { ZooKeeperWatches } from './watches.js'

export interface SessionSettings extends ConnectorSettings, RequestLimits {
  readonly auth: readonly Credentials[]
  readonly closeTimeoutMs: number
}

type SessionEnd = SessionEvent & { type: 'expired' | 'closed' }

/**
 * One session over any number of connections, one at a time. Once it has expired or was closed, it
 * never comes back.
 */
export class ZooKeeperSession implements ConnectionListener {
  readonly watches = new ZooKeeperWatches()
  readonly #settings: SessionSettings
  readonly #listeners = new Set<SessionListener>()
  readonly #requests: RequestQueue
  readonly #connector: Connector
  #info: SessionInfo | null = null
  /** The connection is authenticated. */
  #isReady = false
  #isSuspected = false
  #end: ZooKeeperError | null = null
  #closing: Promise<void> | null = null
  #lastZxid = 0n
  #touchedAt = -Infinity

  constructor(settings: SessionSettings) {
    this.#settings = settings
    this.#connector = new Connector(settings)
    this.#requests = new RequestQueue(settings, () => this.lastFailure)
  }

  /** null before the first connection. */
  get info(): SessionInfo | null {
    return this.#info
  }

  /** The latest `touchedAt` of all answered writes, see `Answer`. */
  get touchedAt(): number {
    return this.#touchedAt
  }

  /** Why the last connection failed, if no answer has come since. */
  get lastFailure(): Error | undefined {
    return this.#connector.lastFailure
  }

  subscribe(listener: SessionListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  submit(request: PendingRequest<object>): void {
    const refusal = this.#refusal(request)
    if (refusal) request.fail(refusal)
    else this.#accept(request)
  }

  /**
   * Tells the server to end the session; if none answers in time, the session is left to expire.
   * Never fails.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  onOpen({ sessionId, password, timeoutMs }: ConnectResponse): void {
    if (timeoutMs <= 0) return this.#finish({ type: 'expired' })
    this.#info = { id: sessionId, password, timeoutMs }
    this.#authenticate(0)
  }

  onReply({ xid, zxid, error }: ReplyHeader, touchedAt: number): void {
    // A server that only accepts the session and then hangs up has to be retried with pauses.
    if (xid !== Xid.auth) this.#connector.onAnswer()
    if (xid > 0 && zxid > this.#lastZxid) this.#lastZxid = zxid
    if (touchedAt > this.#touchedAt) this.#touchedAt = touchedAt
    if (error === Err.sessionExpired) this.#finish({ type: 'expired' })
  }

  onEvent(event: WatcherEvent): void {
    const fired = this.watches.take(event)
    if (!fired) return
    for (const listener of fired.listeners) {
      const isLate = this.watches.wasSetAgain(listener)
      tell(listener, { type: fired.type, path: event.path, ...(isLate && { wasSetAgain: true }) })
    }
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
    this.#isReady = false
    this.#connector.onEnd(reason, () => this.#connect())
  }

  #refusal(request: PendingRequest<object>): ZooKeeperError | null {
    if (this.#end) return this.#end
    if (this.#closing) return new ZooKeeperError('CLOSED', `'${request.what}' came after close()`)
    return this.#requests.refusal(request)
  }

  #accept(request: PendingRequest<object>): void {
    this.#requests.add(request)
    if (this.#isReady) return this.#send(request)
    this.#requests.keep(request)
    this.#connect()
  }

  #send(request: PendingRequest<object>): void {
    const { connection } = this.#connector
    if (!connection) return
    const now = this.#settings.env.now()
    request.sending(this.#requests.takeXid(), now, connection.touchKnownAt(now))
    connection.send(request)
  }

  #connect(): void {
    if (!this.#end) this.#connector.connect(this.#info, this.#lastZxid, this)
  }

  /** Before anything else: the server would judge an earlier request without the credentials. */
  #authenticate(index: number): void {
    const credentials = this.#settings.auth[index]
    if (!credentials) return this.#onAuthenticated()
    const onReply = ({ error }: ReplyHeader): void => {
      if (error === 0) return this.#authenticate(index + 1)
      const reason = serverError(error, `the authentication with scheme '${credentials.scheme}'`, {})
      this.#finish({ type: 'closed', reason })
    }
    this.#sendAside(Xid.auth, authFrame(credentials), onReply)
  }

  #onAuthenticated(): void {
    this.#isReady = true
    for (const watches of this.watches.toSetAgain(this.#lastZxid)) {
      const xid = this.#requests.takeXid()
      this.#sendAside(
        xid,
        frame((out) => writeSetWatches(out.int(xid).int(Op.setWatches), watches)),
      )
    }
    this.#requests.sendAll((request) => this.#send(request))
    if (this.#isSuspected) this.#trust()
    else this.#emit({ type: 'connected' })
  }

  /** A request of the session itself. */
  #sendAside(xid: number, bytes: Buffer, onReply: Exchange['onReply'] = () => {}): void {
    const sentAt = this.#settings.env.now()
    this.#connector.connection?.send({ xid, bytes, sentAt, touchedAt: Number.NaN, onReply, onLoss: () => {} })
  }

  #suspect(): void {
    if (this.#isSuspected) return
    this.#isSuspected = true
    const since = this.#connector.connection?.heardAt ?? this.#settings.env.now()
    this.#emit({ type: 'suspected', since })
  }

  #trust(): void {
    this.#isSuspected = false
    this.#emit({ type: 'reconnected' })
  }

  async #close(): Promise<void> {
    this.#requests.failUnsent(
      new ZooKeeperError('CLOSED', 'The client was closed before the request was sent'),
    )
    if (this.#info && !this.#end) {
      const request = new PendingRequest(closeSession(), {
        what: 'close the session',
        path: '/',
        timeoutMs: this.#settings.closeTimeoutMs,
      })
      this.#accept(request)
      await request.promise.catch(() => {})
    }
    this.#finish({ type: 'closed' })
  }

  #finish(event: SessionEnd): void {
    if (this.#end) return
    this.#end = endError(event)
    this.#requests.failUnsent(this.#end)
    this.#connector.stop(this.#end)
    this.watches.clear()
    this.#emit(event)
  }

  #emit(event: SessionEvent): void {
    for (const listener of [...this.#listeners]) tell(listener, event)
  }
}

function endError(event: SessionEnd): ZooKeeperError {
  if (event.type === 'expired')
    return new ZooKeeperError('SESSION_EXPIRED', 'The ZooKeeper session has expired; make a new client')
  return event.reason ?? new ZooKeeperError('CLOSED', 'The ZooKeeper client was closed')
}

function authFrame({ scheme, credentials }: Credentials): Buffer {
  return frame((out) => out.int(Xid.auth).int(Op.auth).int(0).string(scheme).string(credentials))
}
