import type { ConnectionOptions } from 'node:tls'
import type { Cancel, Env } from '../../../base/env.js'
import { nothing } from '../../../base/nothing.js'
import type { Host } from '../../hosts.js'
import { Code, Http2Error, nameOfCode } from './errors.js'
import {
  Flag,
  FrameReader,
  FrameType,
  frame,
  type Http2Frame,
  headerFrames,
  LARGEST_UINT31,
  LEAST_MAX_FRAME,
  numberFrame,
  requestFrames,
  withoutPadding,
} from './frames.js'
import { type HeaderBlock, HeaderBlocks } from './header-blocks.js'
import { NO_TABLE } from './hpack.js'
import { SendWindows } from './send-windows.js'
import { clientSettings, FIRST_WINDOW, SETTINGS_ACK, ServerSettings } from './settings.js'
import { BatchedSocket } from './socket.js'
import { Http2Stream, type Http2StreamListener } from './stream.js'

export interface Http2Settings {
  readonly host: Host
  /** null: without TLS. */
  readonly tls: ConnectionOptions | null
  /** The connection ends when the numbers of streams up to this one are used up. */
  readonly lastStreamId: number
  readonly env: Env
}

/** What becomes of a connection. */
export interface Http2Listener {
  /** The server has said its first word: streams can be opened. */
  onReady(): void
  /** The server has sent something. */
  onSign(): void
  /** Once, unless `end` was called. `what` follows the name of the server. */
  onEnd(what: string, cause?: Error): void
}

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
/** Enough for a long line in one answer, without a round trip in between. */
const WINDOW_BYTES = 8 * 1024 * 1024
const PING = frame(FrameType.ping, 0, 0, Buffer.from('holdfast'))
const PING_BYTES = 8
/**
 * How long the server waits for the answer to a ping. etcd sends one for each request unless one is
 * unanswered, to measure the bandwidth: answered at once, each would be a packet and a wake-up more
 * on both sides.
 */
const ANSWER_PINGS_MS = 10
/** A server that asks and asks without reading the answers is left. */
const MOST_BACKLOG_BYTES = 1024 * 1024

/** The client's side of one HTTP/2 connection (RFC 9113), as far as gRPC needs it. */
export class Http2Connection {
  readonly #listener: Http2Listener
  readonly #lastStreamId: number
  readonly #env: Env
  readonly #socket: BatchedSocket
  readonly #reader = new FrameReader((frame) => this.#onFrame(frame))
  readonly #blocks = new HeaderBlocks()
  readonly #server = new ServerSettings()
  readonly #sender: SendWindows
  readonly #streams = new Map<number, Http2Stream>()
  /** Not known to the server yet, because it limits how many streams are open at once. */
  readonly #waiting = new Set<Http2Stream>()
  #nextId = 1
  #isReady = false
  #isEnded = false
  /** Above it, the server has done nothing. */
  #lastTouchedId = Infinity
  /** How many bytes have arrived that the server was not told to have been read. */
  #unconfirmed = 0
  /** The answers to pings that are to be sent soon. */
  #pingAnswers: Buffer[] = []
  #cancelPingAnswers: Cancel = nothing

  constructor({ host, tls, lastStreamId, env }: Http2Settings, listener: Http2Listener) {
    this.#listener = listener
    this.#env = env
    this.#lastStreamId = lastStreamId
    this.#socket = new BatchedSocket(host, tls, {
      onData: (chunk) => this.#onData(chunk),
      onError: (error) => this.#fail('cannot be reached', error),
      onClose: () => this.#fail('closed the connection'),
    })
    this.#sender = new SendWindows(this.#server, (bytes) => this.#socket.write(bytes))
    this.#socket.write(PREFACE)
    this.#socket.write(clientSettings(WINDOW_BYTES))
    this.#socket.write(numberFrame(FrameType.windowUpdate, 0, WINDOW_BYTES - FIRST_WINDOW))
  }

  /**
   * Opens a stream for a request with these headers. `body`: all that is sent on it, if that is
   * known. null: the connection has ended.
   */
  open(block: Buffer, listener: Http2StreamListener, body: Buffer | null): Http2Stream | null {
    this.#checkNumbers()
    if (this.#isEnded) return null
    const stream = new Http2Stream(block, listener, body)
    if (this.#streams.size < this.#server.maxConcurrentStreams) this.#start(stream)
    else this.#waiting.add(stream)
    return stream
  }

  send(stream: Http2Stream, bytes: Buffer): void {
    if (stream.isComplete || this.#isEnded) return
    stream.unsent.push({ bytes, isLast: false })
    if (stream.id !== 0) this.#sender.send(stream)
  }

  /** Ends a stream; its listener hears nothing more. */
  cancel(stream: Http2Stream): void {
    if (this.#waiting.delete(stream) || !this.#streams.has(stream.id)) return
    // First: until then the server counts it, and would refuse the one that takes its place.
    this.#socket.write(numberFrame(FrameType.reset, stream.id, Code.cancel))
    this.#remove(stream)
  }

  /** Asks the server for a sign of life. */
  ping(): void {
    if (this.#isReady && !this.#isEnded) this.#socket.write(PING)
  }

  /** Closes the connection. All streams end: those that the server has not seen, untouched. */
  end(why: string): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#cancelPingAnswers()
    this.#socket.destroy()
    const streams = [...this.#streams.values(), ...this.#waiting]
    this.#streams.clear()
    this.#waiting.clear()
    for (const { id, listener } of streams) {
      const isUntouched = id === 0 || id > this.#lastTouchedId
      listener.onEnd({ why, isUntouched })
    }
  }

  #start(stream: Http2Stream): void {
    const isFirst = this.#nextId === 1
    stream.id = this.#nextId
    stream.window = this.#server.initialWindow
    this.#nextId += 2
    this.#streams.set(stream.id, stream)
    const block = isFirst ? Buffer.concat([NO_TABLE, stream.block]) : stream.block
    const { body } = stream
    if (body && block.length <= LEAST_MAX_FRAME && this.#sender.take(stream, body.length))
      return this.#socket.write(requestFrames(stream.id, block, body))
    this.#socket.write(headerFrames(stream.id, block, this.#server.maxFrame))
    if (body) stream.unsent.push({ bytes: body, isLast: true })
    this.#sender.send(stream)
  }

  #checkNumbers(): void {
    if (this.#nextId > this.#lastStreamId) this.#fail('needs a new connection: all stream numbers are used')
  }

  #startWaiting(): void {
    if (this.#waiting.size === 0) return
    for (const stream of this.#waiting) {
      if (this.#streams.size >= this.#server.maxConcurrentStreams) return
      this.#checkNumbers()
      if (this.#isEnded) return
      this.#waiting.delete(stream)
      this.#start(stream)
    }
  }

  #remove(stream: Http2Stream): void {
    this.#streams.delete(stream.id)
    this.#sender.forget(stream)
    this.#startWaiting()
  }

  #onData(chunk: Buffer): void {
    try {
      this.#reader.push(chunk)
    } catch (error) {
      // Listeners read messages, which may be cut off.
      if (!(error instanceof Http2Error || error instanceof RangeError)) throw error
      const code = error instanceof Http2Error ? error.code : Code.protocolError
      this.#socket.destroy(numberFrame(FrameType.goAway, 0, 0, code))
      this.#fail('sent what cannot be read', error)
    }
  }

  #onFrame(frame: Http2Frame): void {
    if (this.#isEnded) return
    this.#listener.onSign()
    const block = this.#blocks.push(frame)
    if (block) return this.#onHeaders(block)
    const { type } = frame
    if (type === FrameType.data) this.#onBytes(frame)
    else if (type === FrameType.windowUpdate) this.#onWindow(frame)
    else if (type === FrameType.ping) this.#onPing(frame)
    else if (type === FrameType.settings) this.#onSettings(frame)
    else if (type === FrameType.reset) this.#onReset(frame)
    else if (type === FrameType.goAway) this.#onGoAway(frame)
    else if (type === FrameType.pushPromise)
      throw new Http2Error(Code.protocolError, 'The server pushes, which it was told not to do')
  }

  #onHeaders({ streamId, headers, isLast }: HeaderBlock): void {
    const stream = this.#find(streamId)
    if (!stream) return
    stream.listener.onHeaders(headers)
    if (isLast) this.#finish(stream)
  }

  #onBytes(frame: Http2Frame): void {
    const { streamId, flags, length } = frame
    const stream = this.#find(streamId)
    const isLast = (flags & Flag.endStream) !== 0
    this.#unconfirmed = this.#confirm(0, this.#unconfirmed + length)
    if (!stream) return
    if (!isLast) stream.unconfirmed = this.#confirm(streamId, stream.unconfirmed + length)
    const bytes = withoutPadding(frame)
    if (bytes.length > 0) stream.listener.onData(Buffer.from(bytes))
    if (isLast) this.#finish(stream)
  }

  /** Tells the server that so many bytes were read, if they are many. Returns what was not told. */
  #confirm(streamId: number, bytes: number): number {
    if (bytes < WINDOW_BYTES / 2) return bytes
    this.#socket.write(numberFrame(FrameType.windowUpdate, streamId, bytes))
    return 0
  }

  #onWindow({ streamId, payload }: Http2Frame): void {
    const bytes = uint31(payload, 0)
    if (streamId === 0) return this.#sender.widen(null, bytes)
    const stream = this.#find(streamId)
    if (stream) this.#sender.widen(stream, bytes)
  }

  #onPing({ flags, payload }: Http2Frame): void {
    if (payload.length !== PING_BYTES) throw new Http2Error(Code.frameSizeError, 'A ping is cut off')
    if (flags & Flag.ack) return
    if (this.#pingAnswers.push(frame(FrameType.ping, Flag.ack, 0, payload)) > 1) return
    this.#cancelPingAnswers = this.#env.timer(ANSWER_PINGS_MS, () => this.#answerPings(), {
      keepAlive: false,
    })
  }

  #answerPings(): void {
    const answers = this.#pingAnswers
    this.#pingAnswers = []
    if (this.#socket.backlog > MOST_BACKLOG_BYTES) this.#fail('does not read the answers to its pings')
    else for (const answer of answers) this.#socket.write(answer)
  }

  #onSettings(frame: Http2Frame): void {
    if (frame.flags & Flag.ack) return
    const before = this.#server.initialWindow
    this.#server.apply(frame)
    this.#answer(SETTINGS_ACK)
    this.#sender.shift(this.#streams.values(), this.#server.initialWindow - before)
    this.#startWaiting()
    if (this.#isReady) return
    this.#isReady = true
    this.#listener.onReady()
  }

  #onReset({ streamId, payload }: Http2Frame): void {
    const stream = this.#find(streamId)
    const code = uint32(payload, 0)
    if (!stream) return
    this.#remove(stream)
    const isUntouched = code === Code.refusedStream
    stream.listener.onEnd({ why: `reset the call (${nameOfCode(code)})`, isUntouched })
  }

  #onGoAway({ payload }: Http2Frame): void {
    const [lastId, code] = [uint31(payload, 0), uint32(payload, 4)]
    this.#lastTouchedId = lastId
    const text = payload.toString('utf8', 8)
    const details = code === Code.noError ? '' : ` (${nameOfCode(code)}${text && `: ${text}`})`
    this.#fail(`ended the connection${details}`)
  }

  /** The server has ended the stream. */
  #finish(stream: Http2Stream): void {
    if (this.#streams.get(stream.id) !== stream) return
    if (!stream.isComplete || stream.unsent.length > 0) this.cancel(stream)
    else this.#remove(stream)
    stream.listener.onEnd(null)
  }

  /** undefined: the stream has ended, and what was on its way is of no use any more. */
  #find(streamId: number): Http2Stream | undefined {
    const stream = this.#streams.get(streamId)
    if (!stream && (streamId % 2 === 0 || streamId >= this.#nextId))
      throw new Http2Error(Code.protocolError, `There is no stream ${streamId}`)
    return stream
  }

  #answer(bytes: Buffer): void {
    if (this.#socket.backlog > MOST_BACKLOG_BYTES)
      throw new Http2Error(Code.enhanceYourCalm, 'The server does not read the answers to its pings')
    this.#socket.write(bytes)
  }

  #fail(what: string, cause?: Error): void {
    if (this.#isEnded) return
    this.#listener.onEnd(what, cause)
    this.end(what)
  }
}

function uint32(payload: Buffer, at: number): number {
  if (payload.length < at + 4) throw new Http2Error(Code.frameSizeError, 'A frame is cut off')
  return payload.readUInt32BE(at)
}

function uint31(payload: Buffer, at: number): number {
  return uint32(payload, at) & LARGEST_UINT31
}
