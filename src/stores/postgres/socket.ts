import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** Where postgres.js wants to connect to; hosts and ports go together. */
interface Place {
  readonly host: readonly string[]
  readonly port: readonly number[]
  readonly path?: string | false
}

/** A connected socket that does not keep the process from ending, which postgres.js cannot do by itself. */
export async function unreferencedSocket({ host, port, path }: Place): Promise<Socket> {
  if (path) return opened(connect(path))
  let failure: unknown
  for (const [index, name] of host.entries()) {
    try {
      // It takes the name that a certificate has to bear from here.
      return Object.assign(await opened(connect(port[index] ?? 5432, name)), { host: name })
    } catch (error) {
      failure = error
    }
  }
  throw failure
}

async function opened(socket: Socket): Promise<Socket> {
  await once(socket, 'connect')
  socket.unref()
  return socket
}
