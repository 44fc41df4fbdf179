import type { ClientContext, Push } from '../../contract/store.js'

/** A client that is connected through this store value. */
export interface LocalClient {
  readonly context: ClientContext
  /** How the file names it: the wire on which it can be reached, and its id. */
  readonly address: string
  /** The keys that it may be watching. */
  readonly watched: Set<string>
}

/** The clients of one store value: they are told directly. */
export class Clients {
  readonly #wire: string
  readonly #clients = new Map<string, LocalClient>()

  constructor(wire: string) {
    this.#wire = wire
  }

  add(context: ClientContext): LocalClient {
    const client = { context, address: `${this.#wire} ${context.id}`, watched: new Set<string>() }
    this.#clients.set(keyOf(context.space, client.address), client)
    return client
  }

  remove(client: LocalClient): void {
    const key = keyOf(client.context.space, client.address)
    // The same client may have connected anew in the meantime.
    if (this.#clients.get(key) === client) this.#clients.delete(key)
  }

  find(space: string, address: string): LocalClient | undefined {
    return this.#clients.get(keyOf(space, address))
  }

  all(): Iterable<LocalClient> {
    return this.#clients.values()
  }
}

/** The wire of an address. */
export function wireOf(address: string): string {
  return address.slice(0, address.indexOf(' '))
}

export function deliver(client: LocalClient, news: Push): void {
  if (news.type === 'state') client.watched.delete(news.key)
  client.context.push(news)
}

/** Spaces share nothing, so neither do their clients. */
function keyOf(space: string, address: string): string {
  return `${space}\0${address}`
}
