import { backoffMs } from '../../base/backoff.js'
import { type Cancel, detached } from '../../base/env.js'
import { LinkedList } from '../../base/linked-list.js'
import { nothing } from '../../base/nothing.js'
import type { GrpcCall, GrpcListener } from './call.js'
import { EtcdChannel } from './channel.js'
import { asMaybeDone, EtcdError } from './errors.js'
import type { LinkSettings } from './options.js'
import { encode } from './requests.js'
import { readToken } from './responses.js'
import { type CallOwner, UnaryCall } from './unary-call.js'

const FIRST_RETRY_MS = 50
const LONGEST_RETRY_MS = 1000
/** A timer that is so much later than asked for tells of a pause of this process. */
const PAUSE_MS = 100
const AUTHENTICATE = '/etcdserverpb.Auth/Authenticate'
/**
 * The token is too old, or was made before the users were changed, in the words of etcd 3.4 and
 * later ones; or there is none, because authentication was enabled since.
 */
const TOKEN_ENDED =
  /invalid auth token|revision in header is old|revision of auth store is old|user name is empty/
const NOT_ENABLED = 'authentication is not enabled'
/** This server is cut off from the others, or has no vote and answers nothing but reads. */
const NOT_SERVING = /etcdserver: (no leader|rpc not supported for learner)/
const MUTE = 'etcd answers no requests'

/** Told of each connection that is ready for calls. */
export type OpenListener = () => void

/** The way to the cluster: one connection to one of its servers, and to another when it fails. */
export class EtcdLink implements CallOwner {
  readonly #settings: LinkSettings
  readonly #calls = new LinkedList<UnaryCall>()
  readonly #openListeners = new Set<OpenListener>()
  #connection: EtcdChannel | null = null
  /** The connection is open, and we have the token that it may need. */
  #isReady = false
  #token: string | null = null
  #failures = 0
  #lastFailure: EtcdError | null = null
  #cancelRetry: Cancel = nothing
  #isRetrying = false
  #cancelDeadline: Cancel | null = null
  #graceUntil = -Infinity
  /** How many calls were answered. */
  #answers = 0
  #isClosed = false

  constructor(settings: LinkSettings) {
    this.#settings = settings
  }

  /** Why calls are not answered; null: they are. */
  get trouble(): string | null {
    return this.#lastFailure?.message ?? null
  }

  /** There is a connection, ready for calls. */
  get isReady(): boolean {
    return this.#isReady
  }

  get hostCount(): number {
    return this.#settings.hosts.size
  }

  /** Calls the listener at each connection from now on; returns what ends that. */
  onOpen(listener: OpenListener): () => void {
    this.#openListeners.add(listener)
    return () => this.#openListeners.delete(listener)
  }

  /**
   * One request, as `encode` gives it, and one answer. Fails at its deadline, whatever the servers
   * do.
   */
  call(path: string, message: Buffer, now = this.#settings.env.now()): Promise<Buffer> {
    if (this.#isClosed) return Promise.reject(closedError())
    const deadlineAt = now + this.#settings.requestTimeoutMs
    const call = new UnaryCall(path, message, deadlineAt, this.#calls)
    this.#setDeadline()
    if (this.#isReady) this.#send(call, now)
    else this.connect()
    return call.promise
  }

  /**
   * A call of many messages, on the present connection; null: there is none. A server that ends it
   * is left for another one.
   */
  stream(path: string, listener: GrpcListener): GrpcCall | null {
    const connection = this.#isReady ? this.#connection : null
    if (!connection) return null
    return connection.open(path, this.#token, {
      onMessage: (message) => listener.onMessage(message),
      onEnd: (error) => {
        listener.onEnd(error)
        connection.end(error ?? new EtcdError('UNAVAILABLE', `etcd ended ${path}`))
      },
    })
  }

  /** Goes to another server. */
  leave(reason: string): void {
    this.#connection?.end(new EtcdError('UNAVAILABLE', reason))
  }

  /** The server owes an answer on a stream. Returns what has to be called when it has come. */
  owe(): () => void {
    const connection = this.#connection
    connection?.owe()
    return () => connection?.paid()
  }

  /** Connects, unless that is under way. */
  connect(): void {
    if (this.#connection || this.#isRetrying || this.#isClosed) return
    const { hosts, tls, stallTimeoutMs, lastStreamId, env } = this.#settings
    const host = hosts.next()
    try {
      // Outside the async context of the caller: the connection serves all callers.
      this.#connection = detached(() => {
        const connection: EtcdChannel = new EtcdChannel(
          { host, tls, stallTimeoutMs, lastStreamId, env },
          { onOpen: () => void this.#onOpen(connection), onEnd: (reason) => this.#onEnd(connection, reason) },
        )
        return connection
      })
    } catch (error) {
      // Invalid TLS options throw at once.
      this.#fail(new EtcdError('UNAVAILABLE', String(error), { cause: error }))
    }
  }

  close(): void {
    this.#isClosed = true
    this.#cancelRetry()
    this.#cancelDeadline?.()
    this.#openListeners.clear()
    for (const call of this.#openCalls()) call.fail(closedError())
    this.#connection?.end(closedError())
  }

  async #onOpen(connection: EtcdChannel): Promise<void> {
    try {
      await this.#authenticate(connection)
    } catch (error) {
      const reason = error as EtcdError
      // Wrong credentials stay wrong: everybody is told at once.
      if (!reason.maybeDone && !connection.isEnded)
        for (const call of this.#openCalls()) if (!call.isSent) call.fail(reason)
      return connection.end(reason)
    }
    if (connection.isEnded || connection !== this.#connection) return
    this.#isReady = true
    const now = this.#settings.env.now()
    for (const call of this.#openCalls()) this.#send(call, now)
    for (const listener of [...this.#openListeners]) listener()
  }

  async #authenticate(connection: EtcdChannel): Promise<void> {
    const { user, env, requestTimeoutMs } = this.#settings
    if (!user) return
    this.#token = null
    const message = encode((out) => out.text(1, user.name).text(2, user.password))
    const call = new UnaryCall(AUTHENTICATE, message, Infinity)
    call.send(connection, null)
    // No other call is sent meanwhile, so none would tell that the server is mute.
    const cancel = env.timer(requestTimeoutMs, () => this.leave(MUTE), { keepAlive: false })
    try {
      this.#token = readToken(await call.promise)
    } catch (error) {
      // The users can be given to the clients before authentication is enabled.
      if (!(error as EtcdError).message.includes(NOT_ENABLED)) throw error
    } finally {
      cancel()
    }
  }

  #openCalls(): UnaryCall[] {
    const calls: UnaryCall[] = []
    for (let call = this.#calls.first; call; call = call.after) calls.push(call)
    return calls
  }

  #send(call: UnaryCall, now: number): void {
    const connection = this.#connection
    if (!connection || call.isSent) return
    call.answersBefore = this.#answers
    call.sentAt = now
    call.send(connection, this.#token, this)
  }

  onAnswer(connection: EtcdChannel, call: UnaryCall, error: EtcdError | null): boolean {
    this.#answers++
    if (error === null) {
      this.#failures = 0
      this.#lastFailure = null
      return true
    }
    if (this.#settings.user && TOKEN_ENDED.test(error.message) && call.mayRepeat()) {
      void this.#renewToken(connection)
      return false
    }
    // The server ended the connection before it looked at the call: the next one is asked.
    if (connection.isEnded && !error.maybeDone) return false
    if (NOT_SERVING.test(error.message)) connection.end(error)
    return true
  }

  /** Calls that were refused for their token are sent again with the new one. */
  async #renewToken(connection: EtcdChannel): Promise<void> {
    if (!this.#isReady || connection !== this.#connection) return
    this.#isReady = false
    await this.#onOpen(connection)
  }

  #onEnd(connection: EtcdChannel, reason: EtcdError): void {
    if (connection !== this.#connection) return
    this.#connection = null
    this.#isReady = false
    for (const call of this.#openCalls()) if (call.isSent) call.fail(asMaybeDone(reason))
    this.#fail(reason)
  }

  #fail(reason: EtcdError): void {
    if (this.#isClosed) return
    const { env, hosts } = this.#settings
    this.#lastFailure = reason
    const rounds = Math.floor(this.#failures++ / hosts.size)
    const delayMs = rounds === 0 ? 0 : backoffMs(rounds, env.random(), FIRST_RETRY_MS, LONGEST_RETRY_MS)
    this.#isRetrying = true
    const retry = (): void => {
      this.#isRetrying = false
      if (this.#calls.size > 0 || this.#openListeners.size > 0) this.connect()
    }
    this.#cancelRetry = env.timer(delayMs, retry, { keepAlive: false })
  }

  /** All calls have the same timeout, so the oldest ends first. */
  #setDeadline(): void {
    if (this.#cancelDeadline) return
    const oldest = this.#calls.first
    if (!oldest) return
    const { env } = this.#settings
    const dueAt = Math.max(oldest.deadlineAt, this.#graceUntil)
    const onTime = (): void => {
      this.#cancelDeadline = null
      const now = env.now()
      // We were paused ourselves: the answers may have arrived, and are read before the next timer.
      if (now - dueAt > PAUSE_MS) this.#graceUntil = now + PAUSE_MS
      if (now < this.#graceUntil) return this.#setDeadline()
      let isMute = false
      for (const call of this.#openCalls()) {
        if (call.deadlineAt > now) break
        if (this.#isUnanswered(call, now)) isMute = true
        call.fail(this.#lateError(call))
      }
      // It may answer pings although its disk stands still, or as a proxy without a server behind.
      if (isMute) this.leave(MUTE)
      this.#setDeadline()
    }
    this.#cancelDeadline = env.timer(dueAt - env.now(), onTime, { keepAlive: true })
  }

  /** No call was answered for half a timeout or longer: this one may have waited to be sent. */
  #isUnanswered({ isSent, sentAt, answersBefore }: UnaryCall, now: number): boolean {
    const isLong = now - sentAt >= this.#settings.requestTimeoutMs / 2
    return isSent && isLong && answersBefore === this.#answers
  }

  #lateError(call: UnaryCall): EtcdError {
    const because = this.#lastFailure ? `: ${this.#lastFailure.message}` : ''
    const text = `No answer of etcd within ${this.#settings.requestTimeoutMs} ms${because}`
    return new EtcdError('DEADLINE_EXCEEDED', text, { maybeDone: call.isSent })
  }
}

function closedError(): EtcdError {
  return new EtcdError('CLOSED', 'The client was closed')
}
