import { JuteWriter } from './jute.js'

/** More than any answer has. A greater length means that the peer is not a ZooKeeper server. */
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
   * The frames that are complete with this chunk, without their lengths. They share its memory:
   * read them before it is used again. Throws if the stream is not ZooKeeper's.
   */
  push(chunk: Buffer): Buffer[] {
    this.#size += chunk.length
    // Joined only when a whole frame is there: joining at each chunk would make a large answer
    // quadratic.
    if (this.#size < this.#needed) {
      this.#chunks.push(Buffer.from(chunk))
      return []
    }
    const frames: Buffer[] = []
    const bytes = this.#chunks.length === 0 ? chunk : Buffer.concat([...this.#chunks, chunk])
    let start = 0
    for (;;) {
      this.#needed = LENGTH_BYTES
      if (start + LENGTH_BYTES > bytes.length) break
      this.#needed += lengthAt(bytes, start)
      if (start + this.#needed > bytes.length) break
      frames.push(bytes.subarray(start + LENGTH_BYTES, start + this.#needed))
      start += this.#needed
    }
    this.#size = bytes.length - start
    if (this.#chunks.length > 0) this.#chunks = []
    if (this.#size > 0) this.#chunks.push(Buffer.from(bytes.subarray(start)))
    return frames
  }
}

function lengthAt(bytes: Buffer, offset: number): number {
  const length = bytes.readInt32BE(offset)
  if (length < 0 || length > LONGEST_FRAME_BYTES)
    throw new RangeError(
      `A frame of ${length} bytes: is this a ZooKeeper server, with or without TLS as configured?`,
    )
  return length
}
