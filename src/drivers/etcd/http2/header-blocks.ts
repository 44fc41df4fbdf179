import { Code, Http2Error } from './errors.js'
import { Flag, FrameType, type Http2Frame, withoutPadding } from './frames.js'
import { decodeHeaders, type HeaderMap } from './hpack.js'

const PRIORITY_BYTES = 5
/** Of one block. Together they have at most 128 KB; etcd needs no more than one. */
const MOST_FRAMES = 8
const MOST_KNOWN = 16
const LONGEST_KNOWN = 256

/** The headers of one stream. */
export interface HeaderBlock {
  readonly streamId: number
  readonly headers: HeaderMap
  /** Nothing follows on the stream. */
  readonly isLast: boolean
}

interface OpenBlock {
  readonly streamId: number
  readonly isLast: boolean
  readonly parts: Buffer[]
}

interface KnownBlock {
  readonly block: Buffer
  readonly headers: HeaderMap
}

/** Joins the frames of header blocks. Between two frames of a block no other frame may come. */
export class HeaderBlocks {
  /** A block that has begun, and what has arrived of it. */
  #open: OpenBlock | null = null
  /** Without a dynamic table the same bytes are the same headers. Most answers have these. */
  readonly #known: KnownBlock[] = []

  /** null: more frames follow, or the frame has nothing to do with headers. */
  push(frame: Http2Frame): HeaderBlock | null {
    if (this.#open) return this.#continue(this.#open, frame)
    const { type, flags, streamId } = frame
    if (type === FrameType.continuation) throw interrupted()
    if (type !== FrameType.headers) return null
    const isLast = (flags & Flag.endStream) !== 0
    if (flags & Flag.endHeaders)
      return { streamId, isLast, headers: this.#find(frame) ?? this.#decode(fragmentOf(frame)) }
    this.#open = { streamId, isLast, parts: [Buffer.from(fragmentOf(frame))] }
    return null
  }

  /** The headers of a frame that has come before, without padding or priority. */
  #find(frame: Http2Frame): HeaderMap | undefined {
    if (frame.flags & (Flag.padded | Flag.priority)) return undefined
    for (const { block, headers } of this.#known) if (isPayload(frame, block)) return headers
    return undefined
  }

  #continue(open: OpenBlock, { type, flags, streamId, payload }: Http2Frame): HeaderBlock | null {
    if (type !== FrameType.continuation || streamId !== open.streamId) throw interrupted()
    // The number of frames is limited as well, because they may be empty.
    if (open.parts.push(Buffer.from(payload)) > MOST_FRAMES)
      throw new Http2Error(Code.enhanceYourCalm, `Headers come in more than ${MOST_FRAMES} frames`)
    if (!(flags & Flag.endHeaders)) return null
    this.#open = null
    return { streamId, isLast: open.isLast, headers: this.#decode(Buffer.concat(open.parts)) }
  }

  #decode(block: Buffer): HeaderMap {
    const headers = decodeHeaders(block)
    if (block.length > LONGEST_KNOWN) return headers
    if (this.#known.length === MOST_KNOWN) this.#known.length = 0
    this.#known.push({ block: Buffer.from(block), headers })
    return headers
  }
}

function isPayload({ bytes, start, length }: Http2Frame, block: Buffer): boolean {
  if (block.length !== length) return false
  for (let at = 0; at < length; at++) if (block[at] !== bytes[start + at]) return false
  return true
}

function interrupted(): Http2Error {
  return new Http2Error(Code.protocolError, 'Headers are interrupted by another frame')
}

function fragmentOf(frame: Http2Frame): Buffer {
  const bytes = withoutPadding(frame)
  if (!(frame.flags & Flag.priority)) return bytes
  if (bytes.length < PRIORITY_BYTES) throw new Http2Error(Code.frameSizeError, 'Headers are cut off')
  return bytes.subarray(PRIORITY_BYTES)
}
