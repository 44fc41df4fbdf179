import type { Push } from '../../contract/store.js'
import { fromHex } from './values.js'

/**
 * What a routine says of a claim that is not the caller's own. Line, client and id are hexadecimal.
 */
export type MysqlNews = readonly ['granted' | 'lost', line: string, client: string, id: string, fence: number]

export type ClaimNews = Extract<Push, { type: 'granted' | 'lost' }>

/** A client that is connected through this store value. */
export interface MysqlLocalClient {
  readonly id: string
  readonly space: string
  /** One of its claims was granted or lost. */
  onNews(news: ClaimNews): void
  /** A state has been written. */
  onState(key: string): void
}

/** The clients of one store value. They are told in the answer to the call that concerns them. */
export class MysqlClients {
  readonly #clients = new Set<MysqlLocalClient>()

  add(client: MysqlLocalClient): void {
    this.#clients.add(client)
  }

  get isEmpty(): boolean {
    return this.#clients.size === 0
  }

  /** true: it was the last one. */
  remove(client: MysqlLocalClient): boolean {
    this.#clients.delete(client)
    return this.isEmpty
  }

  /** `resourceOf` knows the lines of the call, all of one space. */
  tell(space: string, news: readonly MysqlNews[], resourceOf: (line: string) => string | undefined): void {
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

  #find(space: string, id: string): MysqlLocalClient | undefined {
    for (const client of this.#clients) if (client.id === id && client.space === space) return client
    return undefined
  }
}
