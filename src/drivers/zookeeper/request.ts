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
   * For a write: the leader counts the session's timeout from this monotonic time, or from a later
   * one. It is earlier than `sentAt`, because a write that a follower forwards is no sign of life
   * to the leader; followers report those apart, each half a tick.
   */
  readonly touchedAt: number
}

/** A request as the connection sees it. */
export interface Exchange {
  readonly xid: number
  readonly bytes: Buffer
  readonly sentAt: number
  /** For a write, see `Answer`; NaN for others. */
  readonly touchedAt: number
  /** Takes the rest of the reply. Throws if it cannot be read. */
  onReply(header: ReplyHeader, input: JuteReader): void
  /** The connection ended before the reply came. */
  onLoss(cause: unknown): void
}

interface RequestDetails {
  /** For messages: `create /a`. */
  readonly what: string
  readonly path: string
  readonly timeoutMs: number
  /** Called before the promise resolves, so that no event can come in between. */
  readonly onWatch?: (kind: WatchKind) => void
}

const XID_OFFSET = 4

/** A request of a caller, from its submission to its end. */
export class PendingRequest<T extends object> implements Exchange {
  readonly bytes: Buffer
  readonly timeoutMs: number
  readonly what: string
  readonly promise: Promise<T & Answer>
  xid = 0
  sentAt = Number.NaN
  touchedAt = Number.NaN
  /** Called once, at its end. */
  onSettled: () => void = () => {}
  readonly #operation: Operation<T>
  readonly #details: RequestDetails
  #resolve!: (answer: object) => void
  #reject!: (error: ZooKeeperError) => void
  #isSettled = false
  #knownAt = Number.NaN

  constructor(operation: Operation<T>, details: RequestDetails) {
    this.#operation = operation
    this.#details = details
    this.timeoutMs = details.timeoutMs
    this.what = details.what
    // `sending` puts the number in.
    this.bytes = frame((out) => operation.write(out.int(0).int(operation.op)))
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve as (answer: object) => void
      this.#reject = reject
    })
  }

  /**
   * `knownAt`: the last sign of life that the leader knows of when it handles a request that is
   * sent now.
   */
  sending(xid: number, now: number, knownAt: number): void {
    this.xid = xid
    this.sentAt = now
    this.#knownAt = knownAt
    if (this.#operation.isWrite) this.touchedAt = knownAt
    this.bytes.writeInt32BE(xid, XID_OFFSET)
  }

  onReply({ zxid, error }: ReplyHeader, input: JuteReader): void {
    if (this.#isSettled) return
    const { absent, watch } = this.#operation
    if (error === 0) {
      this.#onSuccess(zxid, input)
      if (watch) this.#details.onWatch?.(watch)
    } else if (error === Err.noNode && absent) {
      this.#details.onWatch?.(absent.watch)
      this.#succeed({ ...absent.value }, zxid)
    } else {
      const { path } = this.#details
      this.fail(serverError(error, `'${this.what}'`, { ...this.#answer(zxid), path }))
    }
  }

  onLoss(cause: unknown): void {
    this.fail(this.#unanswered('CONNECTION_LOSS', 'the connection broke before its answer came', cause))
  }

  onDeadline(cause: unknown): void {
    this.fail(this.#unanswered('REQUEST_TIMEOUT', `it was not answered within ${this.timeoutMs} ms`, cause))
  }

  fail(error: ZooKeeperError): void {
    if (this.#settle()) this.#reject(error)
  }

  #onSuccess(zxid: bigint, input: JuteReader): void {
    try {
      this.#succeed(this.#operation.read(input), zxid)
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error
      // The reply to a multi that failed is a success whose content is the error.
      const { code, message, path = '', index = 0 } = error
      this.fail(new ZooKeeperError(code, message, { path, index, ...this.#answer(zxid) }))
    }
  }

  #succeed(value: T, zxid: bigint): void {
    if (this.#settle()) this.#resolve(Object.assign(value, this.#answer(zxid)))
  }

  #answer(zxid: bigint): Answer {
    return { zxid, sentAt: this.sentAt, touchedAt: this.#knownAt }
  }

  #unanswered(code: 'CONNECTION_LOSS' | 'REQUEST_TIMEOUT', why: string, cause: unknown): ZooKeeperError {
    const maybeDone = this.#operation.isWrite && !Number.isNaN(this.sentAt)
    const advice = maybeDone ? 'it may have been carried out: look before you ask again' : 'ask again'
    const { path } = this.#details
    return new ZooKeeperError(code, `'${this.what}' failed, ${why}; ${advice}`, { path, maybeDone, cause })
  }

  /** false: it has ended already. */
  #settle(): boolean {
    if (this.#isSettled) return false
    this.#isSettled = true
    this.onSettled()
    return true
  }
}
