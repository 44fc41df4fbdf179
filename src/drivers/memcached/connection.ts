import type { Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import type { Cancel, Env } from '../../base/env.js'
import { type Linked, LinkedList } from '../../base/linked-list.js'
import { plainSocket } from '../plain-socket.js'
import { MemcachedError } from './errors.js'
import { type MetaReply, type Reply, ReplyReader } from './replies.js'

export interface MemcachedLinkOptions {
  readonly host: string
  readonly port: number
  readonly env: Env
  /** How long a connection or an answer may take. */
  readonly timeoutMs: number
  /** Left out: no TLS. */
  readonly tls?: ConnectionOptions | undefined
}

/** Hears the reply to one command, while it is read: it must not throw. */
export interface MetaListener {
  readonly kind: 'meta'
  resolve(reply: MetaReply): void
  reject(error: MemcachedError): void
}

interface ListListener {
  readonly kind: 'list'
  resolve(lines: readonly string[]): void
  reject(error: MemcachedError): void
}

type Listener = MetaListener | ListListener

interface Pending extends Linked<Pending> {
  readonly listener: Listener
}

/** How often, within its time, it is looked whether the oldest command is still unanswered. */
const LOOKS = 4

/**
 * One connection. Commands are ASCII. Those of one turn of the event loop travel in one packet, and
 * are answered in order. A connection that does not answer in time is closed: its later answers
 * could not be told apart.
 */
export class MemcachedLink {
  readonly #options: MemcachedLinkOptions
  readonly #socket: Socket
  readonly #reader = new ReplyReader()
  /** Commands that wait for their replies, in order. */
  readonly #pending = new LinkedList<Pending>()
  #unsent = ''
  #failure: MemcachedError | undefined
  #cancelTimer: Cancel | undefined
  readonly #flush = (): void => {
    const commands = this.#unsent
    this.#unsent = ''
    if (!this.#failure) this.#socket.write(commands, 'latin1')
  }

  /** `onEnd` is called once, when the connection is over. */
  constructor(options: MemcachedLinkOptions, onEnd: (error: MemcachedError) => void) {
    this.#options = options
    const { host, port, tls } = options
    const onData = (chunk: Buffer): void => this.#onData(chunk)
    this.#socket = tls
      ? connectTls({ host, port, servername: host, ...tls }).on('data', onData)
      : plainSocket({ host, port }, onData)
    this.#socket.setNoDelay(true)
    this.#socket.on('error', (error) => this.#fail(error.message, error))
    this.#socket.on('close', () => this.#fail('the server closed the connection'))
    this.#onEnd = onEnd
  }

  readonly #onEnd: (error: MemcachedError) => void

  /** A meta command, or another one that is answered by one line. */
  meta(command: string): Promise<MetaReply> {
    return new Promise((resolve, reject) => this.send(command, { kind: 'meta', resolve, reject }))
  }

  /** A command that is answered by lines up to END. */
  list(command: string): Promise<readonly string[]> {
    return new Promise((resolve, reject) => this.send(command, { kind: 'list', resolve, reject }))
  }

  send(command: string, listener: Listener): void {
    if (this.#failure) return listener.reject(this.#failure)
    if (this.#pending.size === 0) this.#socket.ref()
    this.#pending.push({ listener, before: null, after: null })
    this.#cancelTimer ??= this.#startTimer()
    if (this.#unsent === '') process.nextTick(this.#flush)
    this.#unsent += command
  }

  end(error: MemcachedError): void {
    if (this.#failure) return
    this.#failure = error
    this.#cancelTimer?.()
    this.#socket.destroy()
    // First: what the listeners send again needs another connection.
    this.#onEnd(error)
    for (const { listener } of this.#pending.takeAll()) listener.reject(error)
  }

  #fail(message: string, cause?: unknown): void {
    const { host, port } = this.#options
    this.end(new MemcachedError('UNREACHABLE', `${host}:${port}: ${message}`, cause))
  }

  #onData(chunk: Buffer): void {
    this.#reader.add(chunk)
    for (let { first } = this.#pending; first; first = this.#pending.first) {
      const reply = this.#reader.next(first.listener.kind)
      if (!reply) break
      this.#pending.remove(first)
      this.#answer(first.listener, reply)
    }
    this.#reader.keepRest()
    // An idle connection does not keep the process alive.
    if (this.#pending.size === 0 && !this.#failure) this.#socket.unref()
  }

  #answer(listener: Listener, reply: Reply): void {
    if ('failure' in reply) {
      const { host, port } = this.#options
      const error = new MemcachedError('REFUSED', `${host}:${port}: ${reply.failure}`)
      // The server did not understand the command, and may take its data for the next one.
      if (listener.kind === 'meta' && !reply.failure.startsWith('SERVER_ERROR')) this.end(error)
      listener.reject(error)
    } else if (listener.kind === 'meta') listener.resolve(reply as MetaReply)
    else listener.resolve(reply as readonly string[])
  }

  /** One timer for all commands, and no look at the clock for each of them. */
  #startTimer(oldest?: Pending, looks = 1): Cancel {
    const { env, timeoutMs } = this.#options
    const look = (): void => {
      this.#cancelTimer = undefined
      const { first } = this.#pending
      if (!first) return
      const count = first === oldest ? looks + 1 : 1
      if (count > LOOKS) this.#fail(`no answer within ${timeoutMs} ms`)
      else this.#cancelTimer = this.#startTimer(first, count)
    }
    return env.timer(timeoutMs / LOOKS, look, { keepAlive: false })
  }
}
