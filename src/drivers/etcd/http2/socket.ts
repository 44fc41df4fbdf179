import { isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import type { Host } from '../../hosts.js'
import { plainSocket } from '../../plain-socket.js'

interface SocketListener {
  /** The bytes are overwritten by those that arrive next. */
  onData(chunk: Buffer): void
  /** Once or more often. */
  onError(error: Error): void
  onClose(): void
}

/** A TCP or TLS connection that sends what was written in one turn of the event loop at once. */
export class BatchedSocket {
  readonly #socket: Socket
  #unsent: Buffer[] = []

  constructor(host: Host, tls: ConnectionOptions | null, listener: SocketListener) {
    const onData = (chunk: Buffer): void => listener.onData(chunk)
    this.#socket = tls === null ? plainSocket(host, onData) : secureSocket(host, tls, onData)
    this.#socket.setNoDelay(true)
    this.#socket.on('error', (error) => listener.onError(error))
    this.#socket.on('close', () => listener.onClose())
    // A call that waits keeps the process alive by its timer; an idle connection must not.
    this.#socket.unref()
  }

  /** How many bytes the other side, or the way to it, has not taken yet. */
  get backlog(): number {
    return this.#socket.writableLength
  }

  write(bytes: Buffer): void {
    // Not process.nextTick: what answers the server then leaves with the requests that follow.
    if (this.#unsent.push(bytes) === 1) setImmediate(this.#flush)
  }

  /** Closes the connection. What was not sent yet is not sent, except for `lastWords`. */
  destroy(lastWords?: Buffer): void {
    this.#unsent = lastWords ? [lastWords] : []
    this.#flush()
    this.#socket.destroy()
  }

  readonly #flush = (): void => {
    const unsent = this.#unsent
    if (unsent.length === 0) return
    this.#unsent = []
    if (this.#socket.destroyed) return
    const [only] = unsent
    this.#socket.write(unsent.length === 1 && only ? only : Buffer.concat(unsent))
  }
}

function secureSocket({ host, port }: Host, tls: ConnectionOptions, onData: (chunk: Buffer) => void): Socket {
  // An IP address is not allowed as the name of a server.
  const name = isIP(host) === 0 && { servername: host }
  const socket = connectTls({ ALPNProtocols: ['h2'], ...name, ...tls, host, port })
  return socket.on('data', onData)
}
