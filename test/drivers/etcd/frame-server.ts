import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'

export interface ReceivedFrame {
  readonly type: number
  readonly flags: number
  readonly streamId: number
  readonly payload: Buffer
}

const PREFACE_BYTES = 24
const HEADER_BYTES = 9

/** A server that sends the very bytes that a test gives it, and keeps the frames that it is sent. */
export class FrameServer {
  readonly address: string
  /** Of all connections, in order. */
  readonly frames: ReceivedFrame[] = []
  /** The pieces in which they came. */
  readonly chunks: Buffer[] = []
  connections = 0
  /** Called with each frame; a connection begins with a frame of settings. */
  onFrame: (frame: ReceivedFrame, socket: Socket) => void = () => {}
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor(server: Server) {
    this.#server = server
    this.address = `127.0.0.1:${(server.address() as AddressInfo).port}`
    server.on('connection', (socket) => this.#onConnection(socket))
  }

  static async start(): Promise<FrameServer> {
    const server = createServer({ noDelay: true }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new FrameServer(server)
  }

  stop(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }

  #onConnection(socket: Socket): void {
    this.connections++
    this.#sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => this.#sockets.delete(socket))
    let bytes: Buffer = Buffer.alloc(0)
    let skip = PREFACE_BYTES
    socket.on('data', (chunk) => {
      this.chunks.push(chunk)
      bytes = Buffer.concat([bytes, chunk])
      if (bytes.length < skip + HEADER_BYTES) return
      bytes = bytes.subarray(skip)
      skip = 0
      while (bytes.length >= HEADER_BYTES) {
        const end = HEADER_BYTES + bytes.readUIntBE(0, 3)
        if (bytes.length < end) return
        const [type = 0, flags = 0] = bytes.subarray(3, 5)
        const frame = { type, flags, streamId: bytes.readUInt32BE(5), payload: bytes.subarray(9, end) }
        bytes = bytes.subarray(end)
        this.frames.push(frame)
        this.onFrame(frame, socket)
      }
    })
  }
}

/** A frame, by the definition of RFC 9113 and not by the code under test. */
export function rawFrame(
  type: number,
  flags: number,
  streamId: number,
  payload: Buffer = Buffer.alloc(0),
): Buffer {
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUIntBE(payload.length, 0, 3)
  header.writeUInt8(type, 3)
  header.writeUInt8(flags, 4)
  header.writeUInt32BE(streamId, 5)
  return Buffer.concat([header, payload])
}

const OK_HEADERS = Buffer.from([0x88])
/** `grpc-status: 0`, without Huffman codes and not to be indexed. */
const OK_TRAILERS = Buffer.from('\x00\x0bgrpc-status\x010', 'latin1')

/** An answer to a call: one empty message. */
export function rawAnswer(streamId: number): Buffer {
  return Buffer.concat([
    rawFrame(1, 4, streamId, OK_HEADERS),
    rawFrame(0, 0, streamId, Buffer.alloc(5)),
    rawFrame(1, 5, streamId, OK_TRAILERS),
  ])
}

export const EMPTY_SETTINGS = rawFrame(4, 0, 0)
