import { decodeStatusMessage, type EtcdError, errorOfStatus } from './errors.js'
import { GRPC_HEADER_BYTES, isOneMessage, MessageSplitter } from './frames.js'
import type { Http2Connection } from './http2/connection.js'
import type { HeaderMap } from './http2/hpack.js'
import type { Http2Stream, Http2StreamListener, StreamFailure } from './http2/stream.js'

/** What becomes of a call. */
export interface GrpcListener {
  onMessage(message: Buffer): void
  /** Once. null: it ended well. */
  onEnd(error: EtcdError | null): void
}

/** How the end of a stream is told, where the server has not told the outcome of the call. */
export type DescribeFailure = (failure: StreamFailure) => EtcdError

const NO_ANSWER: StreamFailure = { why: 'ended the call without an answer', isUntouched: false }

/** A call that is under way. */
export class GrpcCall implements Http2StreamListener {
  readonly #connection: Http2Connection
  readonly #listener: GrpcListener
  readonly #describe: DescribeFailure
  /** Where a message has come in parts, or several together. */
  #splitter: MessageSplitter | null = null
  #stream: Http2Stream | null = null
  /** null: it ended well. undefined: the server has not told. */
  #outcome: EtcdError | null | undefined
  #isOver = false

  constructor(connection: Http2Connection, listener: GrpcListener, describe: DescribeFailure) {
    this.#connection = connection
    this.#listener = listener
    this.#describe = describe
  }

  /**
   * `block`: the encoded headers of the request. `only`: the message, where it is the only one.
   * Returns whether the connection is open.
   */
  start(block: Buffer, only: Buffer | null): boolean {
    this.#stream = this.#connection.open(block, this, only)
    return this.#stream !== null
  }

  send(message: Buffer): void {
    if (this.#stream) this.#connection.send(this.#stream, message)
  }

  /** Ends it; its listener hears nothing more. */
  cancel(): void {
    this.#isOver = true
    if (this.#stream) this.#connection.cancel(this.#stream)
  }

  onHeaders(headers: HeaderMap): void {
    const [status, httpStatus = '200'] = [headers.get('grpc-status'), headers.get(':status')]
    if (status !== undefined) {
      const message = decodeStatusMessage(headers.get('grpc-message') ?? '')
      this.#outcome = status === '0' ? null : errorOfStatus(Number(status), message)
    } else if (httpStatus >= '201') {
      // Not etcd, but something between us and it.
      const why = `answered with the HTTP status ${httpStatus}`
      this.#outcome = this.#describe({ why, isUntouched: false })
    }
  }

  onData(chunk: Buffer): void {
    if (this.#outcome !== undefined) return
    if (!this.#splitter && isOneMessage(chunk))
      return this.#isOver ? undefined : this.#listener.onMessage(chunk.subarray(GRPC_HEADER_BYTES))
    this.#splitter ??= new MessageSplitter()
    for (const message of this.#splitter.push(chunk)) if (!this.#isOver) this.#listener.onMessage(message)
  }

  onEnd(failure: StreamFailure | null): void {
    if (this.#isOver) return
    this.#isOver = true
    const isKnown = this.#outcome !== undefined
    this.#listener.onEnd(isKnown ? (this.#outcome ?? null) : this.#describe(failure ?? NO_ANSWER))
  }
}
