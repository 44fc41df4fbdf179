import type { Env } from '../../base/env.js'
import { ZooKeeperError } from './errors.js'
import { LAST_XID } from './protocol.js'
import type { PendingRequest } from './request.js'

export interface RequestLimits {
  readonly maxRequests: number
  readonly maxRequestBytes: number
  readonly firstXid: number
  readonly env: Env
}

/**
 * The open requests of one session: numbers them, ends them at their deadlines, and keeps those
 * that are not sent yet.
 */
export class RequestQueue {
  readonly #limits: RequestLimits
  readonly #lastFailure: () => Error | undefined
  readonly #unsent = new Set<PendingRequest<object>>()
  #openCount = 0
  #nextXid: number

  /**
   * `lastFailure`: why requests are not answered, for the error of those that reach their deadline.
   */
  constructor(limits: RequestLimits, lastFailure: () => Error | undefined) {
    this.#limits = limits
    this.#lastFailure = lastFailure
    this.#nextXid = limits.firstXid
  }

  /** Why the request cannot be sent, if so. */
  refusal({ bytes, what }: PendingRequest<object>): ZooKeeperError | null {
    const { maxRequests, maxRequestBytes } = this.#limits
    if (this.#openCount >= maxRequests)
      return new ZooKeeperError('QUEUE_FULL', `'${what}' was not sent: ${maxRequests} requests wait already`)
    // The server would close the connection, which other requests use, too.
    if (bytes.length > maxRequestBytes)
      return new ZooKeeperError(
        'TOO_LARGE',
        `'${what}' has ${bytes.length} bytes, more than ${maxRequestBytes}`,
      )
    return null
  }

  /** The request's time begins. */
  add(request: PendingRequest<object>): void {
    const onDeadline = (): void => request.onDeadline(this.#lastFailure())
    const cancel = this.#limits.env.timer(request.timeoutMs, onDeadline, { keepAlive: true })
    this.#openCount++
    request.onSettled = () => {
      this.#openCount--
      this.#unsent.delete(request)
      cancel()
    }
  }

  /** There is no connection for it yet. */
  keep(request: PendingRequest<object>): void {
    this.#unsent.add(request)
  }

  sendAll(send: (request: PendingRequest<object>) => void): void {
    for (const request of this.#unsent) send(request)
    this.#unsent.clear()
  }

  failUnsent(error: ZooKeeperError): void {
    for (const request of this.#unsent) request.fail(error)
  }

  takeXid(): number {
    const xid = this.#nextXid
    this.#nextXid = xid === LAST_XID ? 1 : xid + 1
    return xid
  }
}
