import { once } from 'node:events'
import {
  createServer,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type ServerOptions,
  type Settings,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import { grpcFrame } from '../../../src/drivers/etcd/frames.js'

/** What the server does with a call. `request` is its first message. */
export type Handler = (stream: ServerHttp2Stream, request: Buffer) => void

interface GrpcServerOptions extends ServerOptions {
  settings?: Settings
}

/** An HTTP/2 server of Node's that takes the place of etcd. */
export class GrpcServer {
  readonly address: string
  readonly sessions: ServerHttp2Session[] = []
  handler: Handler = (stream) => answer(stream)
  /** Called with the headers of each call. */
  onOpen: (stream: ServerHttp2Stream, path: string) => void = () => {}
  readonly #server: ReturnType<typeof createServer>

  private constructor(server: ReturnType<typeof createServer>) {
    this.#server = server
    this.address = `127.0.0.1:${(server.address() as AddressInfo).port}`
    server.on('session', (session) => {
      this.sessions.push(session)
      session.on('error', () => {})
    })
    server.on('stream', (stream, headers) => {
      this.#onStream(stream)
      this.onOpen(stream, headers[':path'] ?? '')
    })
  }

  static async start(options: GrpcServerOptions = {}): Promise<GrpcServer> {
    const server = createServer(options)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new GrpcServer(server)
  }

  stop(): void {
    for (const session of this.sessions) session.destroy()
    this.#server.close()
  }

  #onStream(stream: ServerHttp2Stream): void {
    const chunks: Buffer[] = []
    stream.on('error', () => {})
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.on('end', () => {
      if (!stream.destroyed) this.handler(stream, Buffer.concat(chunks).subarray(5))
    })
  }
}

/** Answers with one message, and with that status. */
export function answer(
  stream: ServerHttp2Stream,
  message: Buffer = Buffer.alloc(0),
  trailers: Record<string, string> = { 'grpc-status': '0' },
): void {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers(trailers))
  stream.end(grpcFrame(message))
}
