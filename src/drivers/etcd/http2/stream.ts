import type { HeaderMap } from './hpack.js'

/** What arrives on a stream. */
export interface Http2StreamListener {
  /** The first ones are those of the answer, the last ones its trailers. */
  onHeaders(headers: HeaderMap): void
  onData(chunk: Buffer): void
  /** Once. null: the server ended it in good order. */
  onEnd(failure: StreamFailure | null): void
}

/** Why a stream ended without an answer. */
export interface StreamFailure {
  readonly why: string
  /** The server has surely done nothing for it. */
  readonly isUntouched: boolean
}

/** One request and its answer. */
export class Http2Stream {
  /** The request's headers. */
  readonly block: Buffer
  readonly listener: Http2StreamListener
  /** All that is sent on it; null: that is not known yet. */
  readonly body: Buffer | null
  /** 0: it is not known to the server yet. */
  id = 0
  /** How many bytes the server takes. It may be below zero. */
  window = 0
  /** How many bytes have arrived that the server was not told to have been read. */
  unconfirmed = 0
  /** What the windows have no room for yet. */
  readonly unsent: { bytes: Buffer; readonly isLast: boolean }[] = []

  constructor(block: Buffer, listener: Http2StreamListener, body: Buffer | null) {
    this.block = block
    this.listener = listener
    this.body = body
  }

  /** Nothing more will be given to it. */
  get isComplete(): boolean {
    return this.body !== null
  }
}
