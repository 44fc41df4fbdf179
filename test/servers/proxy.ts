import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** What happens to the traffic. */
export type ProxyMode =
  /** Everything passes. */
  | 'pass'
  /** Connections stand, but no byte passes in either direction; what was held back passes later. */
  | 'stall'
  /**
   * Requests reach the server, its replies are lost. Connections that lost one are cut when the
   * mode changes, as a stream cannot go on.
   */
  | 'lose replies'
  /** Every connection is cut, and new ones as soon as they are made. */
  | 'refuse'

interface Link {
  readonly client: Socket
  readonly server: Socket
  hasLost: boolean
  isDropped: boolean
}

/** A TCP proxy on 127.0.0.1 in front of a server, to disturb the way between a client and it. */
export class TcpProxy {
  readonly port: number
  /** Where new connections lead. */
  targetPort: number
  /** Connections that were made so far. */
  connections = 0
  /** Bytes that came from clients, and from the server. */
  readonly bytes = { up: 0, down: 0 }
  /** How long each piece of data is held back, in either direction. */
  delayMs = 0
  readonly #links = new Set<Link>()
  readonly #listener: ReturnType<typeof createServer>
  #mode: ProxyMode = 'pass'

  private constructor(listener: ReturnType<typeof createServer>, targetPort: number) {
    this.#listener = listener
    this.port = (listener.address() as AddressInfo).port
    this.targetPort = targetPort
    listener.on('connection', (client) => this.#onConnection(client))
  }

  static async start(targetPort: number): Promise<TcpProxy> {
    const listener = createServer({ allowHalfOpen: true, noDelay: true }).listen(0, '127.0.0.1')
    await once(listener, 'listening')
    return new TcpProxy(listener, targetPort)
  }

  get openConnections(): number {
    return this.#links.size
  }

  set mode(mode: ProxyMode) {
    this.#mode = mode
    for (const link of this.#links) {
      if (mode === 'refuse' || link.hasLost) cut(link)
      else this.#flow(link)
    }
  }

  get mode(): ProxyMode {
    return this.#mode
  }

  /** Cuts every connection, once; clients may connect again. */
  cut(): void {
    for (const link of this.#links) cut(link)
  }

  /**
   * The connections of this moment stand for ever, and no byte passes on them any more: as where a
   * router has forgotten them.
   */
  drop(): void {
    for (const link of this.#links) {
      link.isDropped = true
      this.#flow(link)
    }
  }

  async stop(): Promise<void> {
    this.mode = 'refuse'
    if (this.#listener.listening) await new Promise((resolve) => this.#listener.close(resolve))
  }

  #onConnection(client: Socket): void {
    this.connections++
    const server = connect({ port: this.targetPort, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
    const link = { client, server, hasLost: false, isDropped: false }
    this.#links.add(link)
    this.#carry(link, client, server, 'up')
    this.#carry(link, server, client, 'down')
    for (const socket of [client, server]) {
      socket.on('error', () => cut(link))
      socket.on('close', () => {
        this.#links.delete(link)
        cut(link)
      })
    }
    if (this.#mode === 'refuse') cut(link)
    else this.#flow(link)
  }

  #flow({ client, server, isDropped }: Link): void {
    for (const socket of [client, server]) {
      if (isDropped || this.#mode === 'stall') socket.pause()
      else socket.resume()
    }
  }

  #carry(link: Link, from: Socket, to: Socket, direction: 'up' | 'down'): void {
    const isLost = (): boolean => direction === 'down' && this.#mode === 'lose replies'
    from.on('data', (data) => {
      this.bytes[direction] += data.length
      if (isLost()) link.hasLost = true
      else this.#later(() => to.write(data))
    })
    from.on('end', () => this.#later(() => to.end()))
  }

  /** Timers of one length fire in the order in which they were set. */
  #later(run: () => void): void {
    if (this.delayMs > 0) setTimeout(run, this.delayMs)
    else run()
  }
}

function cut({ client, server }: Link): void {
  client.destroy()
  server.destroy()
}
