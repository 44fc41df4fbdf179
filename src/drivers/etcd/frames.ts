const HEADER_BYTES = 5
const NOTHING = Buffer.alloc(0)

/** A message as gRPC sends it: not compressed, and its length before it. */
export function grpcFrame(message: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + message.length)
  frame[0] = 0
  frame.writeUInt32BE(message.length, 1)
  message.copy(frame, HEADER_BYTES)
  return frame
}

/** Finds the messages in what arrives. */
export class MessageSplitter {
  #rest: Buffer = NOTHING

  /** The messages that are complete with this chunk. */
  push(chunk: Buffer): Buffer[] {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    const messages: Buffer[] = []
    while (bytes.length >= HEADER_BYTES) {
      const end = HEADER_BYTES + bytes.readUInt32BE(1)
      if (bytes.length < end) break
      messages.push(bytes.subarray(HEADER_BYTES, end))
      bytes = bytes.subarray(end)
    }
    this.#rest = bytes
    return messages
  }
}
