import { connect as connectTcp, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import type { Cancel, Env } from '../../base/env.js'
import type { Host } from '../hosts.js'
import { FrameSplitter, frame } from './frames.js'
import { JuteReader } from './jute.js'
import { Op, Xid } from './protocol.js'
import {
  type ConnectRequest,
  type ConnectResponse,
  type ReplyHeader,
  readConnectResponse,
  readReplyHeader,
  readWatcherEvent,
  type WatcherEvent,
  writeConnectRequest,
} from './records.js'
import type { Exchange } from './request.js'
import { Touches } from './touches.js'

/** What a connection tells its session, in the order in which it came. */
export interface ConnectionListener {
  /** The server answered the request for a session. */
  onOpen(response: ConnectResponse): void
  /** After the request got its reply; also for pings. `touchedAt`: see `Exchange`. */
  onReply(header: ReplyHeader, touchedAt: number): void
  onEvent(event: WatcherEvent): void
  /** The server owes an answer and sends nothing. */
  onSilence(): void
  /** It sends answers again. */
  onSpeech(): void
  /** Once, after every open request was told. */
  onEnd(reason: Error): void
}

export interface ConnectionSettings {
  readonly host: Host
  readonly tls: ConnectionOptions | null
  readonly request: ConnectRequest
  /** For everything up to the answer to the request for a session. */
  readonly openWithinMs: number
  /** Of the servers. */
  readonly tickMs: number
  readonly env: Env
}

/** The session's timeout is divided into so many ticks. */
const TICKS = 12
/** A ping is sent after so many ticks without any request. */
const PING_AFTER = 2
/**
 * After so many ticks without an answer that is owed, the connection is suspected, then given up.
 */
const SUSPECT_AFTER = 2
const STALLED_AFTER = 5

/** As large as the reads of Node's own streams. */
const READ_BYTES = 64 * 1024

const PING = frame((out) => out.int(Xid.ping).int(Op.ping))

/**
 * One socket to one server. It ends when the server stops answering, even if the socket stays open.
 */
export class ServerConnection {
  /** Monotonic time of the last answer. */
  heardAt: number
  readonly #env: Env
  readonly #host: Host
  readonly #listener: ConnectionListener
  readonly #socket: Socket
  readonly #splitter = new FrameSplitter()
  readonly #owed = new Map<number, Exchange>()
  #onFrame = (bytes: Buffer): void => this.#onOpen(bytes)
  #cancelTimer: Cancel
  readonly #tickMs: number
  #touches: Touches
  #pingedAt: number | null = null
  #hasHeard = false
  #silentTicks = 0
  #idleTicks = 0
  #isEnded = false
  #unsent: Buffer[] = []

  constructor(settings: ConnectionSettings, listener: ConnectionListener) {
    const { host, tls, env, openWithinMs, tickMs } = settings
    this.#env = env
    this.#host = host
    this.#listener = listener
    this.heardAt = env.now()
    this.#tickMs = tickMs
    this.#touches = new Touches(this.heardAt, tickMs)
    this.#socket = tls === null ? this.#connectTcp() : this.#connectTls(tls)
    // The deadline timers of open requests keep the process alive; an idle connection must not.
    this.#socket.setNoDelay(true).unref()
    this.#socket.on(tls === null ? 'connect' : 'secureConnect', () => this.#requestSession(settings.request))
    this.#socket.on('error', (error) => this.end(error))
    this.#socket.on('close', () => this.end(this.#error('closed the connection')))
    const late = (): void =>
      this.end(this.#error(`did not open a session within ${Math.round(openWithinMs)} ms`))
    this.#cancelTimer = env.timer(openWithinMs, late, { keepAlive: false })
  }

  /** The last sign of life that the leader knows of when it handles a request that is sent now. */
  touchKnownAt(now: number): number {
    return this.#touches.knownAt(now)
  }

  send(exchange: Exchange): void {
    this.#owed.set(exchange.xid, exchange)
    this.#idleTicks = 0
    this.#write(exchange.bytes)
  }

  /** Closes the socket. Harmless when it has ended already. */
  end(reason: Error): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#cancelTimer()
    this.#socket.destroy()
    for (const exchange of this.#owed.values()) exchange.onLoss(reason)
    this.#owed.clear()
    this.#listener.onEnd(reason)
  }

  /**
   * Everything is read into one buffer: a stream would allocate one of that size for each answer.
   */
  #connectTcp(): Socket {
    const buffer = Buffer.allocUnsafeSlow(READ_BYTES)
    const callback = (size: number): boolean => {
      this.#onData(buffer.subarray(0, size))
      return true
    }
    return connectTcp({ ...this.#host, onread: { buffer, callback } })
  }

  #connectTls(options: ConnectionOptions): Socket {
    return connectTls({ ...options, ...this.#host }).on('data', (chunk) => this.#onData(chunk))
  }

  #requestSession(request: ConnectRequest): void {
    this.#touches = new Touches(this.#env.now(), this.#tickMs)
    this.#write(frame((out) => writeConnectRequest(out, request)))
  }

  /** What is sent in one turn of the event loop leaves in one packet. */
  #write(bytes: Buffer): void {
    if (this.#unsent.length === 0) process.nextTick(this.#flush)
    this.#unsent.push(bytes)
  }

  readonly #flush = (): void => {
    const unsent = this.#unsent
    this.#unsent = []
    if (this.#isEnded) return
    if (unsent.length > 1) this.#socket.write(Buffer.concat(unsent))
    else for (const bytes of unsent) this.#socket.write(bytes)
  }

  #onData(chunk: Buffer): void {
    try {
      for (const bytes of this.#splitter.push(chunk)) {
        if (this.#isEnded) return
        this.#onFrame(bytes)
      }
    } catch (error) {
      this.end(this.#error('sent bytes that cannot be read', error))
    }
  }

  #onOpen(bytes: Buffer): void {
    const response = readConnectResponse(new JuteReader(bytes))
    this.#cancelTimer()
    this.#onFrame = (next) => this.#onMessage(next)
    this.heardAt = this.#env.now()
    this.#listener.onOpen(response)
    if (!this.#isEnded) this.#startTicks(response.timeoutMs / TICKS)
  }

  #onMessage(bytes: Buffer): void {
    const input = new JuteReader(bytes)
    const header = readReplyHeader(input)
    if (header.xid === Xid.notification) return this.#listener.onEvent(readWatcherEvent(input))
    if (header.xid === Xid.ping) this.#listener.onReply(header, this.#onPong())
    else this.#listener.onReply(header, this.#onAnswer(header, input))
  }

  #onPong(): number {
    if (this.#pingedAt !== null) this.#heard(this.#pingedAt)
    this.#pingedAt = null
    return Number.NaN
  }

  /** The request's `touchedAt`. */
  #onAnswer(header: ReplyHeader, input: JuteReader): number {
    const exchange = this.#owed.get(header.xid)
    if (!exchange) throw new RangeError(`An answer to request ${header.xid}, which was not sent`)
    this.#owed.delete(header.xid)
    this.#heard(exchange.sentAt)
    exchange.onReply(header, input)
    return exchange.touchedAt
  }

  #heard(sentAt: number): void {
    this.#hasHeard = true
    this.heardAt = this.#env.now()
    this.#touches.answered(sentAt, this.heardAt)
    if (this.#silentTicks >= SUSPECT_AFTER) this.#listener.onSpeech()
    this.#silentTicks = 0
  }

  #startTicks(tickMs: number): void {
    const tick = (): void => {
      this.#cancelTimer = this.#env.timer(tickMs, tick, { keepAlive: false })
      this.#onTick()
    }
    this.#cancelTimer = this.#env.timer(tickMs, tick, { keepAlive: false })
  }

  /**
   * Silence is counted in ticks, not in time: a pause of this process is one tick, after which
   * arrived data is read.
   */
  #onTick(): void {
    const isOwed = this.#owed.size > 0 || this.#pingedAt !== null
    if (isOwed && !this.#hasHeard) this.#silentTicks++
    this.#hasHeard = false
    if (this.#silentTicks >= STALLED_AFTER) return this.end(this.#error('does not answer'))
    if (this.#silentTicks === SUSPECT_AFTER && isOwed) this.#listener.onSilence()
    if (isOwed || ++this.#idleTicks < PING_AFTER) return
    this.#pingedAt = this.#env.now()
    this.#idleTicks = 0
    this.#write(PING)
  }

  #error(what: string, cause?: unknown): Error {
    const { host, port } = this.#host
    return new Error(`${host}:${port} ${what}`, cause === undefined ? undefined : { cause })
  }
}
