import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

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
  return socket.once('connect', () => socket.unref())
}

function isOpened(socket: Socket): Promise<boolean> {
  return once(socket, 'connect').then(
    () => true,
    () => false,
  )
}
