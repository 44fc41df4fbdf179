import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { outOfReach } from './failures.js'

/** Where postgres.js connects to; hosts and ports go together. */
interface Target {
  readonly host: readonly string[]
  readonly port: readonly number[]
  readonly path?: string | false
}

/** The sockets that we have opened, so that close() also ends those to a hung server. */
export class Sockets {
  readonly #open = new Set<Socket>()

  add(socket: Socket): Socket {
    this.#open.add(socket)
    return socket.once('close', () => this.#open.delete(socket))
  }

  destroy(): void {
    for (const socket of [...this.#open]) socket.destroy()
  }
}

/**
 * A socket that does not keep the process alive; postgres.js has no option for that. It must not
 * reject: postgres.js would never use that connection of its pool again. A failure of the last host
 * (mostly the only one) reaches postgres.js as an event of the socket.
 */
export async function unreferencedSocket({ host, port, path }: Target): Promise<Socket> {
  if (path) return unreferenced(connect(path))
  const last = host.length - 1
  for (let index = 0; ; index++) {
    const socket = unreferenced(connect(port[index] ?? 5432, host[index] ?? 'localhost'))
    // From here it takes the host name to check the certificate against.
    Object.assign(socket, { host: host[index] })
    if (index >= last || (await isOpened(socket))) return socket
  }
}

function unreferenced(socket: Socket): Socket {
  socket.once('connect', () => {
    socket.unref()
    // postgres.js has asked for the greeting to be sent before this.
    setImmediate(() => endUnused(socket))
  })
  return closedPlainly(socket)
}

/**
 * Between the error of a socket and its end, postgres.js may give it a query. It fails that query
 * only if the socket ends without an error; otherwise the query has no answer, or an empty one.
 */
function closedPlainly(socket: Socket): Socket {
  const emit = socket.emit.bind(socket)
  socket.emit = (event: string, ...details: unknown[]) =>
    event === 'close' ? emit(event, false) : emit(event, ...details)
  return socket
}

/**
 * Where a socket ends while postgres.js has something to send, the connection after it sends
 * nothing before it has 1024 bytes, not even its greeting. Each end brings a greeting more, so
 * after a few of them it works again. Otherwise each would take until its connection times out.
 */
function endUnused(socket: Socket): void {
  if (socket.bytesWritten === 0) socket.destroy(outOfReach('the connection was not used'))
}

function isOpened(socket: Socket): Promise<boolean> {
  return once(socket, 'connect').then(
    () => true,
    () => false,
  )
}
