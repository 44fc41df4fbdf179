import type { ClientContext, Push } from '../../contract/store.js'

/** A client that is connected through this store value. */
export interface LocalClient {
  readonly context: ClientContext
  /** The number of the last news that was read from the file for it. */
  heard: number
  /** Whether news that it has heard may still be in the file. */
  hasOldNews: boolean
  /** Whether its news are going to be read. */
  isAboutToRead: boolean
  /** Whether other processes may have been asked to wake it. */
  hasListened: boolean
  /** The keys it watches, as far as is known here: another process may have taken a watch, with the news on its way. */
  readonly watched: Set<string>
}

/** The clients of one store value: they are told directly, without a row or a bell. */
export class Clients {
  readonly #clients = new Map<string, LocalClient>()

  add(context: ClientContext): LocalClient {
    const flags = { hasOldNews: false, isAboutToRead: false, hasListened: false }
    const client = { context, heard: 0, ...flags, watched: new Set<string>() }
    this.#clients.set(addressOf(context.space, context.id), client)
    return client
  }

  remove(client: LocalClient): void {
    const address = addressOf(client.context.space, client.context.id)
    // The same client may have connected anew in the meantime.
    if (this.#clients.get(address) === client) this.#clients.delete(address)
  }

  find(space: string, id: string): LocalClient | undefined {
    return this.#clients.get(addressOf(space, id))
  }

  all(): Iterable<LocalClient> {
    return this.#clients.values()
  }
}

export function deliver(client: LocalClient, news: Push): void {
  if (news.type === 'state') client.watched.delete(news.key)
  client.context.push(news)
}

/** Spaces share nothing, so neither do their clients. */
export function addressOf(space: string, id: string): string {
  return `${space}\0${id}`
}
