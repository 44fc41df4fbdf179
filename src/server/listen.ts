import { lookup } from 'node:dns/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { invalid } from '../base/errors.js'
import type { Dashboard } from './dashboard.js'
import { isLoopback } from './guard.js'

/** A client that sends its headers or its body slowly is cut off. Answers may take longer. */
const HEADERS_WITHIN_MS = 10_000
const REQUEST_WITHIN_MS = 20_000
const IDLE_MS = 5000
const CHECK_EVERY_MS = 1000
const MOST_CONNECTIONS = 10_000

/** Where a server listens. */
export interface ListenOptions {
  readonly host: string
  readonly port: number
}

/** A server that listens. */
export interface Listening {
  readonly url: string
  /** Ends open connections, also those with event streams and waiting requests. */
  close(): Promise<void>
}

/**
 * Every address that the host stands for. Beyond this machine a token is required: a name such as
 * `localhost` may resolve to something else.
 */
export async function addressesOf(host: string): Promise<string[]> {
  try {
    const found = await lookup(host, { all: true })
    return found.map(({ address }) => address)
  } catch {
    throw invalid(`The host '${host}' is not known; use an address of this machine, such as 127.0.0.1`)
  }
}

/** Whether only this machine can reach all of these addresses. */
export function areLoopback(addresses: readonly string[]): boolean {
  return addresses.length > 0 && addresses.every(isLoopback)
}

/** Listens on the address that was checked, not on a name that may resolve anew. */
export async function listen(view: Dashboard, { host, port }: ListenOptions): Promise<Listening> {
  const server = createServer(
    {
      headersTimeout: HEADERS_WITHIN_MS,
      requestTimeout: REQUEST_WITHIN_MS,
      keepAliveTimeout: IDLE_MS,
      connectionsCheckingInterval: CHECK_EVERY_MS,
    },
    (request, response) => void view.node(request, response),
  )
  server.maxConnections = MOST_CONNECTIONS
  await listening(server, port, host)
  return {
    url: urlOf(server.address() as AddressInfo),
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      try {
        await view.close()
      } finally {
        server.closeAllConnections()
        await closed
      }
    },
  }
}

function listening(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

function urlOf({ address, port, family }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}/`
}
