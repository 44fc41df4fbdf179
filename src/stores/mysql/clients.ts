import type { Push } from '../../contract/store.js'
import { fromHex } from './values.js'

/** What a routine says of a claim that is not the caller's own: what, line, client, id, fence. The last four are hexadecimal, but for the fence. */
export type News = readonly ['granted' | 'lost', line: string, client: string, id: string, fence: number]

export type ClaimNews = Extract<Push, { type: 'granted' | 'lost' }>

/** A client that is connected through this store value. */
export interface LocalClient {
  readonly id: string
  readonly space: string
  /** Something has become of one of its claims. */
  onNews(news: ClaimNews): void
  /** A state has been written. */
  onState(key: string): void
}

/** The clients of one store value: they are told directly, by the answer to the call that concerns them. */
export class Clients {
  readonly #clients = new Set<LocalClient>()

  add(client: LocalClient): void {
    this.#clients.add(client)
  }

  get isEmpty(): boolean {
    return this.#clients.size === 0
  }

  /** Whether there is nobody left. */
  remove(client: LocalClient): boolean {
    this.#clients.delete(client)
    return this.isEmpty
  }

  /** `resourceOf` knows the lines that the call was about, all of one space. */
  tell(space: string, news: readonly News[], resourceOf: (line: string) => string | undefined): void {
    for (const [type, line, client, hexId, fence] of news) {
      const resource = resourceOf(line)
      const told = this.#find(space, fromHex(client))
      if (!told || resource === undefined) continue
      const id = fromHex(hexId)
      told.onNews(type === 'granted' ? { type, resource, id, fence } : { type, resource, id })
    }
  }

  tellState(space: string, key: string): void {
    for (const client of this.#clients) if (client.space === space) client.onState(key)
  }

  #find(space: string, id: string): LocalClient | undefined {
    for (const client of this.#clients) if (client.id === id && client.space === space) return client
    return undefined
  }
}
