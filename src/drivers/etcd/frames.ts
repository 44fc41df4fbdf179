export const GRPC_HEADER_BYTES = 5
/** Far more than etcd sends, and little enough to keep in memory. */
const MOST_BYTES = 256 * 1024 * 1024

/** A message as gRPC sends it: not compressed, and its length before it. */
export function grpcFrame(message: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(GRPC_HEADER_BYTES + message.length)
  message.copy(frame, GRPC_HEADER_BYTES)
  return withGrpcHeader(frame)
}

/** The same where room was left for the header. */
export function withGrpcHeader(frame: Buffer): Buffer {
  frame[0] = 0
  frame.writeUInt32BE(frame.length - GRPC_HEADER_BYTES, 1)
  return frame
}

/** Whether the bytes are one whole message. */
export function isOneMessage(bytes: Buffer): boolean {
  return bytes.length >= GRPC_HEADER_BYTES && bytes.length === GRPC_HEADER_BYTES + lengthOf(bytes)
}

/** Finds the messages in what arrives. */
export class MessageSplitter {
  /** What has arrived of a message, and how long it is. Joined once, when that is complete. */
  #chunks: Buffer[] = []
  #length = 0
  #needed = GRPC_HEADER_BYTES

  /** The messages that are complete with this chunk. */
  push(chunk: Buffer): Buffer[] {
    this.#chunks.push(chunk)
    this.#length += chunk.length
    const messages: Buffer[] = []
    while (this.#length >= this.#needed) {
      const bytes = this.#joined()
      const end = GRPC_HEADER_BYTES + lengthOf(bytes)
      const isComplete = bytes.length >= end
      if (isComplete) messages.push(bytes.subarray(GRPC_HEADER_BYTES, end))
      this.#keep(isComplete ? bytes.subarray(end) : bytes, isComplete ? GRPC_HEADER_BYTES : end)
    }
    return messages
  }

  #joined(): Buffer {
    const [only] = this.#chunks
    return this.#chunks.length === 1 && only ? only : Buffer.concat(this.#chunks, this.#length)
  }

  #keep(rest: Buffer, needed: number): void {
    this.#chunks = rest.length > 0 ? [rest] : []
    this.#length = rest.length
    this.#needed = needed
  }
}

function lengthOf(bytes: Buffer): number {
  if (bytes[0] !== 0) throw new RangeError('A message is compressed, which was not asked for')
  const length = bytes.readUInt32BE(1)
  if (length > MOST_BYTES) throw new RangeError(`A message of ${length} bytes is too large`)
  return length
}
