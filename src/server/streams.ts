import type { Cancel, Env } from '../base/env.js'
import { nothing } from '../base/nothing.js'
import { Problem } from './problems.js'
import type { SpaceFeed } from './space-feed.js'

/** A comment line keeps proxies from closing a quiet stream. */
const COMMENT_EVERY_MS = 15_000
/** A stream that has more than this unsent is skipped until it has caught up. */
const MOST_UNSENT_BYTES = 256 * 1024
/** A stream that sends nothing for so long, although there is something to send, is closed. */
const STALLED_MS = 60_000

const COMMENT = Buffer.from(':\n\n')

/** One event of a stream, encoded once for all that get it. */
export function encodeEvent(event: string, data: unknown): Uint8Array {
  return Buffer.from(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
}

/** One open stream of events. A slow reader gets a fresh whole instead of all it has missed. */
export class EventStream {
  readonly body: ReadableStream<Uint8Array>
  /** Whether it has got the whole, so that differences make sense to it. */
  isStarted = false
  #controller!: ReadableStreamDefaultController<Uint8Array>
  #isBehind = false
  #behindSince = 0

  constructor(
    readonly resource: string | null,
    readonly env: Env,
    private readonly onCaughtUp: (stream: EventStream) => void,
    private readonly onEnd: (stream: EventStream) => void,
  ) {
    const strategy = new ByteLengthQueuingStrategy({ highWaterMark: MOST_UNSENT_BYTES })
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
        },
        pull: () => this.#caughtUp(),
        cancel: () => this.onEnd(this),
      },
      strategy,
    )
  }

  /** Sends all of them, or none: a part of them would leave the stream behind again at once. */
  send(...events: readonly Uint8Array[]): void {
    if ((this.#controller.desiredSize ?? 0) > 0) {
      for (const event of events) this.#controller.enqueue(event)
      return
    }
    if (!this.#isBehind) this.#behindSince = this.env.now()
    this.#isBehind = true
    if (this.env.now() - this.#behindSince > STALLED_MS) this.#fail()
  }

  end(): void {
    this.onEnd(this)
    try {
      this.#controller.close()
    } catch {
      // The reader has cancelled it already.
    }
  }

  /** What is unsent is dropped: a connection that is not read must not wait for it. */
  #fail(): void {
    this.onEnd(this)
    this.#controller.error(new Error(`The stream was not read for ${STALLED_MS / 1000} s`))
  }

  #caughtUp(): void {
    if (!this.#isBehind) return
    this.#isBehind = false
    this.onCaughtUp(this)
  }
}

/** All open streams of a server. */
export class Streams {
  readonly #env: Env
  readonly #most: number
  readonly #open = new Map<EventStream, SpaceFeed>()
  #cancel: Cancel = nothing

  constructor(env: Env, most: number) {
    this.#env = env
    this.#most = most
  }

  get count(): number {
    return this.#open.size
  }

  /** The answer to a request for events. */
  open(feed: SpaceFeed, resource: string | null): Response {
    if (this.#open.size >= this.#most)
      throw new Problem('TOO_MANY_STREAMS', `There are ${this.#most} open event streams; close some`)
    const stream = new EventStream(
      resource,
      this.#env,
      (each) => feed.sendAll(each),
      (each) => this.#ended(each),
    )
    this.#open.set(stream, feed)
    if (this.#open.size === 1) this.#comment()
    feed.add(stream)
    return new Response(stream.body, {
      headers: {
        'content-type': 'text/event-stream; charset=utf-8',
        // Proxies such as nginx would collect the events.
        'x-accel-buffering': 'no',
      },
    })
  }

  close(): void {
    for (const stream of [...this.#open.keys()]) stream.end()
  }

  #ended(stream: EventStream): void {
    this.#open.get(stream)?.remove(stream)
    this.#open.delete(stream)
    if (this.#open.size === 0) this.#cancel()
  }

  #comment(): void {
    this.#cancel = this.#env.timer(
      COMMENT_EVERY_MS,
      () => {
        this.#comment()
        for (const stream of [...this.#open.keys()]) stream.send(COMMENT)
      },
      { keepAlive: false },
    )
  }
}
