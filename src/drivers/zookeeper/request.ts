import { type Deferred, deferred } from '../../base/deferred.js'
import { serverError, ZooKeeperError } from './errors.js'
import { frame } from './frames.js'
import type { JuteReader } from './jute.js'
import type { Operation } from './operations.js'
import { Err } from './protocol.js'
import type { ReplyHeader } from './records.js'
import type { WatchKind } from './watches.js'

/** What comes with every answer. */
export interface Answer {
  /** The newest transaction that the server had seen when it answered. */
  readonly zxid: bigint
  /** Monotonic milliseconds (of the client's `env`) just before the request was sent. */
  readonly sentAt: number
  /**
   * If the request was a write: from this monotonic time on, the leader counts the session's time-out, or from a later one. Earlier
   * than `sentAt`, because a write that a follower passes on is no sign of life to the leader; those travel apart, each half a tick.
   */
  readonly touchedAt: number
}

/** What a connection has to know of a request. */
export interface Exchange {
  readonly xid: number
  readonly bytes: Buffer
  readonly sentAt: number
  /** Takes the rest of the reply. Throws where it makes no sense. */
  onReply(header: ReplyHeader, input: JuteReader): void
  /** The connection ended before the reply came. */
  onLoss(cause: unknown): void
}

interface Circumstances {
  /** For messages: `create /a`. */
  readonly what: string
  readonly path: string
  readonly timeoutMs: number
  /** Called before the answer is given out, so that no event can come between. */
  readonly onWatch?: (kind: WatchKind) => void
}

const XID_OFFSET = 4

/** A request of a user of the session, from its submission to its end. */
export class Request<T extends object> implements Exchange {
  readonly bytes: Buffer
  readonly timeoutMs: number
  readonly what: string
  sentAt = Number.NaN
  /** Called once, at its end. */
  onSettled: () => void = () => {}
  readonly #operation: Operation<T>
  readonly #circumstances: Circumstances
  readonly #outcome: Deferred<T & Answer> = deferred()
  #touchedAt = Number.NaN
  #xid = 0
  #isSettled = false

  constructor(operation: Operation<T>, circumstances: Circumstances) {
    this.#operation = operation
    this.#circumstances = circumstances
    this.timeoutMs = circumstances.timeoutMs
    this.what = circumstances.what
    // The number is put in when it is sent.
    this.bytes = frame((out) => operation.write(out.int(0).int(operation.op)))
  }

  get promise(): Promise<T & Answer> {
    return this.#outcome.promise
  }

  get xid(): number {
    return this.#xid
  }

  sending(xid: number, now: number, touchedAt: number): void {
    this.#xid = xid
    this.sentAt = now
    this.#touchedAt = touchedAt
    this.bytes.writeInt32BE(xid, XID_OFFSET)
  }

  onReply({ zxid, error }: ReplyHeader, input: JuteReader): void {
    if (this.#isSettled) return
    const { absent, watch } = this.#operation
    const answer = { zxid, sentAt: this.sentAt, touchedAt: this.#touchedAt }
    if (error === Err.noNode && absent) {
      this.#circumstances.onWatch?.(absent.watch)
      this.#settle(() => this.#outcome.resolve({ ...absent.value, ...answer }))
    } else if (error !== 0) {
      this.fail(serverError(error, `'${this.what}'`, { ...answer, path: this.#circumstances.path }))
    } else {
      this.#onSuccess(input, answer)
      if (watch) this.#circumstances.onWatch?.(watch)
    }
  }

  onLoss(cause: unknown): void {
    this.fail(this.#unanswered('CONNECTION_LOSS', 'the connection broke before its answer came', cause))
  }

  onDeadline(cause: unknown): void {
    this.fail(this.#unanswered('REQUEST_TIMEOUT', `it was not answered within ${this.timeoutMs} ms`, cause))
  }

  fail(error: ZooKeeperError): void {
    this.#settle(() => this.#outcome.reject(error))
  }

  #onSuccess(input: JuteReader, answer: Answer): void {
    try {
      const value = this.#operation.read(input)
      this.#settle(() => this.#outcome.resolve(Object.assign(value, answer)))
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error
      // A multi tells of its failure inside a reply that is fine.
      const { code, message, path = '', index = 0 } = error
      this.fail(new ZooKeeperError(code, message, { path, index, ...answer }))
    }
  }

  #unanswered(code: 'CONNECTION_LOSS' | 'REQUEST_TIMEOUT', why: string, cause: unknown): ZooKeeperError {
    const maybeDone = this.#operation.isWrite && !Number.isNaN(this.sentAt)
    const advice = maybeDone ? 'it may have been carried out: look before you ask again' : 'ask again'
    const { path } = this.#circumstances
    return new ZooKeeperError(code, `'${this.what}' failed, ${why}; ${advice}`, { path, maybeDone, cause })
  }

  #settle(tell: () => void): void {
    if (this.#isSettled) return
    this.#isSettled = true
    this.onSettled()
    tell()
  }
}
