import { connect as connectTcp, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import type { Cancel, Env } from '../../base/env.js'
import { MemcachedError } from './errors.js'
import { type Reply, type ReplyKind, ReplyReader } from './replies.js'

export interface MemcachedLinkOptions {
  readonly host: string
  readonly port: number
  readonly env: Env
  /** How long a connection or an answer may take. */
  readonly timeoutMs: number
  /** Left out: no TLS. */
  readonly tls?: ConnectionOptions | undefined
}

interface Pending {
  readonly kind: ReplyKind
  readonly sentAt: number
  resolve(reply: Reply): void
  reject(error: MemcachedError): void
}

/**
 * One connection. Commands of one turn of the event loop travel in one packet, and are answered in
 * order. A connection that does not answer in time is closed: its later answers could not be told
 * apart.
 */
export class MemcachedLink {
  readonly #options: MemcachedLinkOptions
  readonly #socket: Socket
  readonly #reader = new ReplyReader()
  /** Commands that wait for their replies; those before `#answered` have theirs. */
  #pending: Pending[] = []
  #answered = 0
  #unsent = ''
  #failure: MemcachedError | undefined
  #cancelTimer: Cancel | undefined
  readonly #flush = (): void => {
    const commands = this.#unsent
    this.#unsent = ''
    if (!this.#failure) this.#socket.write(commands)
  }

  /** `onEnd` is called once, when the connection is over. */
  constructor(options: MemcachedLinkOptions, onEnd: (error: MemcachedError) => void) {
    this.#options = options
    const { host, port, tls } = options
    this.#socket = tls ? connectTls({ host, port, servername: host, ...tls }) : connectTcp({ host, port })
    this.#socket.setNoDelay(true)
    this.#socket.on('data', (chunk) => this.#onData(chunk))
    this.#socket.on('error', (error) => this.#fail(error.message, error))
    this.#socket.on('close', () => this.#fail('the server closed the connection'))
    this.#onEnd = onEnd
  }

  readonly #onEnd: (error: MemcachedError) => void

  send(command: string, kind: ReplyKind): Promise<Reply> {
    if (this.#failure) return Promise.reject(this.#failure)
    return new Promise((resolve, reject) => {
      if (this.#isIdle) this.#socket.ref()
      this.#pending.push({ kind, sentAt: this.#options.env.now(), resolve, reject })
      this.#cancelTimer ??= this.#startTimer(this.#options.timeoutMs)
      if (this.#unsent === '') process.nextTick(this.#flush)
      this.#unsent += command
    })
  }

  end(error: MemcachedError): void {
    if (this.#failure) return
    this.#failure = error
    this.#cancelTimer?.()
    this.#socket.destroy()
    const unanswered = this.#pending.slice(this.#answered)
    this.#pending = []
    this.#answered = 0
    for (const { reject } of unanswered) reject(error)
    this.#onEnd(error)
  }

  get #isIdle(): boolean {
    return this.#pending.length === this.#answered
  }

  #fail(message: string, cause?: unknown): void {
    const { host, port } = this.#options
    this.end(new MemcachedError('UNREACHABLE', `${host}:${port}: ${message}`, cause))
  }

  #onData(chunk: Buffer): void {
    this.#reader.add(chunk)
    for (;;) {
      const pending = this.#pending[this.#answered]
      if (!pending) break
      const reply = this.#reader.next(pending.kind)
      if (!reply) break
      this.#answered++
      pending.resolve(reply)
      if (pending.kind === 'meta' && 'failure' in reply && !reply.failure.startsWith('SERVER_ERROR')) {
        // The server did not understand the command, and may take its data for the next one.
        const { host, port } = this.#options
        return this.end(new MemcachedError('REFUSED', `${host}:${port}: ${reply.failure}`))
      }
    }
    if (!this.#isIdle) return
    this.#pending = []
    this.#answered = 0
    // An idle connection does not keep the process alive.
    this.#socket.unref()
  }

  /** One timer for all commands: it is started again for the oldest that waits. */
  #startTimer(ms: number): Cancel {
    const { env, timeoutMs } = this.#options
    const look = (): void => {
      this.#cancelTimer = undefined
      const oldest = this.#pending[this.#answered]
      if (!oldest) return
      const leftMs = oldest.sentAt + timeoutMs - env.now()
      if (leftMs <= 0) this.#fail(`no answer within ${timeoutMs} ms`)
      else this.#cancelTimer = this.#startTimer(leftMs)
    }
    return env.timer(ms, look, { keepAlive: false })
  }
}
