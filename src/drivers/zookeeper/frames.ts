import { JuteWriter } from './jute.js'

/** More than any sensible answer; a greater length means that this is no ZooKeeper server, or the stream is out of step. */
const LONGEST_FRAME_BYTES = 64 * 1024 * 1024

const LENGTH_BYTES = 4

/** A record with its length in front, as it goes over the wire. */
export function frame(write: (out: JuteWriter) => void): Buffer {
  const out = new JuteWriter()
  out.int(0)
  write(out)
  const bytes = out.bytes()
  bytes.writeInt32BE(bytes.length - LENGTH_BYTES)
  return bytes
}

/** Cuts the incoming stream into frames. */
export class FrameSplitter {
  #chunks: Buffer[] = []
  #size = 0
  #needed = LENGTH_BYTES

  /**
   * The frames that are complete with this chunk, without their lengths: parts of it, to be read before its bytes are used again.
   * Throws where the stream makes no sense.
   */
  push(chunk: Buffer): Buffer[] {
    this.#size += chunk.length
    // Joined only when a whole frame is there: joining at each chunk would make a large answer quadratic.
    if (this.#size < this.#needed) {
      this.#chunks.push(Buffer.from(chunk))
      return []
    }
    const frames: Buffer[] = []
    let rest = this.#chunks.length === 0 ? chunk : Buffer.concat([...this.#chunks, chunk])
    for (;;) {
      this.#needed = LENGTH_BYTES
      if (rest.length < LENGTH_BYTES) break
      this.#needed += lengthOf(rest)
      if (rest.length < this.#needed) break
      frames.push(rest.subarray(LENGTH_BYTES, this.#needed))
      rest = rest.subarray(this.#needed)
    }
    this.#chunks = rest.length > 0 ? [Buffer.from(rest)] : []
    this.#size = rest.length
    return frames
  }
}

function lengthOf(bytes: Buffer): number {
  const length = bytes.readInt32BE()
  if (length < 0 || length > LONGEST_FRAME_BYTES)
    throw new RangeError(
      `A frame of ${length} bytes: is this a ZooKeeper server, with or without TLS as configured?`,
    )
  return length
}
