import type { ClientContext, Push } from '../../contract/store.js'

/** A client that is connected through this store value. */
export interface SqliteStoreClient {
  readonly context: ClientContext
  /** How the file names it: the socket that reaches it, and its id. */
  readonly address: string
  /** The keys that it may be watching. */
  readonly watched: Set<string>
}

/** The clients of one store value. They are told directly, not over a socket. */
export class SqliteClients {
  readonly #socket: string
  readonly #clients = new Map<string, SqliteStoreClient>()

  constructor(socket: string) {
    this.#socket = socket
  }

  add(context: ClientContext): SqliteStoreClient {
    const client = { context, address: `${this.#socket} ${context.id}`, watched: new Set<string>() }
    this.#clients.set(keyOf(context.space, client.address), client)
    return client
  }

  remove(client: SqliteStoreClient): void {
    const key = keyOf(client.context.space, client.address)
    // The same client may have connected again in the meantime.
    if (this.#clients.get(key) === client) this.#clients.delete(key)
  }

  find(space: string, address: string): SqliteStoreClient | undefined {
    return this.#clients.get(keyOf(space, address))
  }

  all(): Iterable<SqliteStoreClient> {
    return this.#clients.values()
  }
}

/** The socket of an address. */
export function socketOf(address: string): string {
  return address.slice(0, address.indexOf(' '))
}

export function deliver(client: SqliteStoreClient, news: Push): void {
  if (news.type === 'state') client.watched.delete(news.key)
  client.context.push(news)
}

function keyOf(space: string, address: string): string {
  return `${space}\0${address}`
}
