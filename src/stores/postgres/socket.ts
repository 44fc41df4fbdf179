import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** Where postgres.js wants to connect to; hosts and ports go together. */
interface Place {
  readonly host: readonly string[]
  readonly port: readonly number[]
  readonly path?: string | false
}

/** The sockets of the connections that we have opened, to end those that a silent server would keep open. */
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
 * A socket that does not keep the process from ending, which postgres.js cannot do by itself. It must not reject: postgres.js would never use that
 * connection of its pool again. So whether the last host (mostly the only one) can be reached is told by the socket, which it hears.
 */
export async function unreferencedSocket({ host, port, path }: Place): Promise<Socket> {
  if (path) return unreferenced(connect(path))
  const last = host.length - 1
  for (let index = 0; ; index++) {
    const socket = unreferenced(connect(port[index] ?? 5432, host[index] ?? 'localhost'))
    // It takes the name that a certificate has to bear from here.
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
