import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** Of `ZooDefs.OpCode`; an event is none, but the server's word that a watch has fired. */
const KINDS = {
  create: [15],
  delete: [2],
  'set data': [5],
  multi: [14],
  list: [12],
  watch: [3, 4],
  sync: [9],
  'watches set again': [101],
  event: [],
} as const
const EVENT_XID = -1
const [MULTI, SET_DATA] = [14, 5]

export type CutKind = keyof typeof KINDS
/**
 * Before the server has seen the request, or after it has handled it, in place of the answer. An
 * event is cut in place of itself.
 */
export type CutMoment = 'before' | 'after'

interface Order {
  readonly kind: CutKind
  readonly moment: CutMoment
  readonly done: () => void
}

/**
 * A proxy that reads ZooKeeper's frames, and cuts a connection in the middle of a chosen exchange.
 */
export class CuttingProxy {
  readonly port: number
  readonly #listener: Server
  readonly #links = new Set<Link>()
  #order: Order | null = null

  private constructor(listener: Server, targetPort: number) {
    this.#listener = listener
    this.port = (listener.address() as AddressInfo).port
    listener.on('connection', (client) => {
      const link = new Link(client, connect(targetPort, '127.0.0.1'), () => this.#order)
      this.#links.add(link)
      client.once('close', () => this.#links.delete(link))
    })
  }

  static async start(targetPort: number): Promise<CuttingProxy> {
    const listener = createServer({ noDelay: true }).listen(0, '127.0.0.1')
    await once(listener, 'listening')
    return new CuttingProxy(listener, targetPort)
  }

  /** Cuts at the next exchange of that kind; resolves when that has been done. */
  cutAt(kind: CutKind, moment: CutMoment): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        this.#order = null
        resolve()
      }
      this.#order = { kind, moment, done }
    })
  }

  /** Cuts at every exchange of that kind, until told to let them pass. */
  cutAll(kind: CutKind, moment: CutMoment): () => void {
    this.#order = { kind, moment, done: () => {} }
    return () => {
      this.#order = null
    }
  }

  async stop(): Promise<void> {
    for (const link of this.#links) link.cut()
    await new Promise((resolve) => this.#listener.close(resolve))
  }
}

class Link {
  readonly #client: Socket
  readonly #server: Socket
  readonly #order: () => Order | null
  #awaited: { readonly xid: number; readonly order: Order } | null = null

  constructor(client: Socket, server: Socket, order: () => Order | null) {
    this.#client = client
    this.#server = server
    this.#order = order
    server.setNoDelay(true)
    for (const socket of [client, server]) socket.on('error', () => {}).on('close', () => this.cut())
    onFrames(client, (frame, isFirst) => {
      if (isFirst || !this.#cutsRequest(frame)) server.write(frame)
    })
    onFrames(server, (frame, isFirst) => {
      if (isFirst || !this.#cutsAnswer(frame)) client.write(frame)
    })
  }

  cut(): void {
    this.#client.destroy()
    this.#server.destroy()
  }

  #cutsRequest(frame: Buffer): boolean {
    const order = this.#order()
    const xid = frame.readInt32BE(4)
    if (!order || this.#awaited || !isOf(order.kind, frame)) return false
    if (order.moment === 'before') return this.#fulfil(order)
    this.#awaited = { xid, order }
    return false
  }

  #cutsAnswer(frame: Buffer): boolean {
    const xid = frame.readInt32BE(4)
    const order = this.#order()
    if (xid === EVENT_XID && order?.kind === 'event') return this.#fulfil(order)
    return this.#awaited?.xid === xid && this.#fulfil(this.#awaited.order)
  }

  #fulfil(order: Order): true {
    this.cut()
    order.done()
    return true
  }
}

function isOf(kind: CutKind, frame: Buffer): boolean {
  const operation = frame.readInt32BE(8)
  // A holder that leaves where others wait says so first, in the same transaction.
  if (kind === 'delete' && operation === MULTI && frame.readInt32BE(12) === SET_DATA) return true
  return (KINDS[kind] as readonly number[]).includes(operation)
}

/**
 * Each frame with its length before it. The first one of a connection is a greeting, without a
 * number.
 */
function onFrames(socket: Socket, take: (frame: Buffer, isFirst: boolean) => void): void {
  let [rest, isFirst] = [Buffer.alloc(0), true]
  socket.on('data', (data) => {
    rest = Buffer.concat([rest, data])
    while (rest.length >= 4 && rest.length >= 4 + rest.readInt32BE(0) && !socket.destroyed) {
      const end = 4 + rest.readInt32BE(0)
      take(rest.subarray(0, end), isFirst)
      rest = rest.subarray(end)
      isFirst = false
    }
  })
}
