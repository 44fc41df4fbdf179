import { Code, Http2Error } from './errors.js'

export const FrameType = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const

export const Flag = { ack: 1, endStream: 1, endHeaders: 4, padded: 8, priority: 0x20 } as const

const HEADER_BYTES = 9

/** A frame inside `bytes`, which are overwritten later. */
export class Http2Frame {
  readonly bytes: Buffer
  readonly start: number
  readonly end: number
  readonly type: number
  readonly flags: number
  /** 0: it is about the connection. */
  readonly streamId: number

  /** `at`: where its header is. `end`: of the payload. */
  constructor(bytes: Buffer, at: number, end: number) {
    this.bytes = bytes
    this.start = at + HEADER_BYTES
    this.end = end
    this.type = bytes[at + 3] ?? 0
    this.flags = bytes[at + 4] ?? 0
    this.streamId = bytes.readUInt32BE(at + 5) & LARGEST_UINT31
  }

  get length(): number {
    return this.end - this.start
  }

  /** Part of what was read: copy what is needed later. */
  get payload(): Buffer {
    return this.bytes.subarray(this.start, this.end)
  }
}

const TLS_ALERT = 0x15
/** Every peer accepts frames of this size. We accept no larger ones. */
export const LEAST_MAX_FRAME = 16_384
export const LARGEST_UINT31 = 2 ** 31 - 1

export function frame(type: number, flags: number, streamId: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + payload.length)
  putFrame(bytes, 0, type, flags, streamId, payload)
  return bytes
}

/** Headers and body of a request that need one frame each, in one piece. */
export function requestFrames(streamId: number, block: Buffer, body: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(2 * HEADER_BYTES + block.length + body.length)
  const at = putFrame(bytes, 0, FrameType.headers, Flag.endHeaders, streamId, block)
  putFrame(bytes, at, FrameType.data, Flag.endStream, streamId, body)
  return bytes
}

/** Returns where it ends. */
function putFrame(
  bytes: Buffer,
  at: number,
  type: number,
  flags: number,
  streamId: number,
  payload: Uint8Array,
): number {
  const { length } = payload
  bytes[at] = length >>> 16
  bytes[at + 1] = length >>> 8
  bytes[at + 2] = length
  bytes[at + 3] = type
  bytes[at + 4] = flags
  bytes.writeUInt32BE(streamId, at + 5)
  bytes.set(payload, at + HEADER_BYTES)
  return at + HEADER_BYTES + length
}

/** A frame whose payload is numbers of 32 bits. */
export function numberFrame(type: number, streamId: number, ...numbers: readonly number[]): Buffer {
  const payload = Buffer.allocUnsafe(numbers.length * 4)
  for (const [index, number] of numbers.entries()) payload.writeUInt32BE(number, index * 4)
  return frame(type, 0, streamId, payload)
}

/** The headers of a call, in as many frames as the server's limit asks for. */
export function headerFrames(streamId: number, block: Buffer, maxFrame: number): Buffer {
  if (block.length <= maxFrame) return frame(FrameType.headers, Flag.endHeaders, streamId, block)
  const frames: Buffer[] = []
  for (let at = 0; at < block.length; at += maxFrame) {
    const type = at === 0 ? FrameType.headers : FrameType.continuation
    const flags = at + maxFrame < block.length ? 0 : Flag.endHeaders
    frames.push(frame(type, flags, streamId, block.subarray(at, at + maxFrame)))
  }
  return Buffer.concat(frames)
}

/** The payload without its padding. */
export function withoutPadding({ flags, payload }: Http2Frame): Buffer {
  if (!(flags & Flag.padded)) return payload
  const padding = payload[0]
  if (padding === undefined || padding >= payload.length)
    throw new Http2Error(Code.protocolError, 'A frame has more padding than bytes')
  return payload.subarray(1, payload.length - padding)
}

/** Finds the frames in what arrives. */
export class FrameReader {
  readonly #onFrame: (frame: Http2Frame) => void
  #rest: Buffer | null = null
  #hasStarted = false

  constructor(onFrame: (frame: Http2Frame) => void) {
    this.#onFrame = onFrame
  }

  /** `chunk` may be overwritten afterwards. */
  push(chunk: Buffer): void {
    const bytes = this.#rest ? Buffer.concat([this.#rest, chunk]) : chunk
    let at = 0
    if (!this.#hasStarted) this.#checkStart(bytes)
    try {
      while (bytes.length - at >= HEADER_BYTES) {
        const end = at + HEADER_BYTES + lengthAt(bytes, at)
        if (end > bytes.length) break
        const start = at
        at = end
        this.#onFrame(new Http2Frame(bytes, start, end))
      }
    } finally {
      this.#rest = at < bytes.length ? Buffer.from(bytes.subarray(at)) : null
    }
  }

  /** A server begins with its settings. Anything else is another protocol. */
  #checkStart(bytes: Buffer): void {
    this.#hasStarted = bytes.length >= HEADER_BYTES
    const isSettings = bytes[3] === FrameType.settings && bytes[4] === 0
    if (bytes[0] === 0 && (isSettings || !this.#hasStarted)) return
    const start = JSON.stringify(bytes.toString('latin1', 0, 20))
    const advice = bytes[0] === TLS_ALERT ? 'it asks for TLS' : `it began with ${start}`
    throw new Http2Error(Code.protocolError, `This is not HTTP/2: ${advice}`)
  }
}

function lengthAt(bytes: Buffer, at: number): number {
  const length = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0)
  if (length <= LEAST_MAX_FRAME) return length
  throw new Http2Error(Code.frameSizeError, `A frame of ${length} bytes is too large`)
}
