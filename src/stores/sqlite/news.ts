import type { Push } from '../../contract/store.js'
import type { Clients } from './clients.js'
import type { Transaction } from './lock-file.js'
import type { Statements } from './statements.js'
import { encodeText } from './text.js'

/** After that time a client has asked by itself, in its pulse. */
const NEWS_LIVE_MS = 60_000

/** News for one client. */
export interface Message {
  readonly space: string
  readonly client: string
  readonly news: Push
}

/** The outbox in the file: what other processes' clients are to be told becomes durable together with what caused it. */
export class News {
  readonly #sql: Statements
  readonly #transaction: Transaction
  readonly #clients: Clients
  #untold: Message[] = []

  constructor(sql: Statements, transaction: Transaction, clients: Clients) {
    this.#sql = sql
    this.#transaction = transaction
    this.#clients = clients
  }

  /** Forgets what a transaction that did not come about would have told. */
  begin(): void {
    this.#untold = []
  }

  tell(space: string, client: string, news: Push): void {
    this.#untold.push({ space, client, news })
  }

  /** Writes the news for other processes' clients, and removes what the own clients have heard. */
  post(): void {
    for (const { space, client, news } of this.#untold) {
      if (this.#clients.find(space, client)) continue
      this.#transaction.counter += 1
      const { counter, now } = this.#transaction
      const address = [encodeText(space), encodeText(client)]
      this.#sql.newsAdd.run(counter, ...address, JSON.stringify(news), now + NEWS_LIVE_MS)
    }
    for (const client of this.#clients.all()) if (client.hasOldNews) this.forget(client.context, client.heard)
  }

  /** What is to be told after the commit, to whom it may concern. */
  committed(): Message[] {
    for (const client of this.#clients.all()) client.hasOldNews = false
    const untold = this.#untold
    this.#untold = []
    return untold
  }

  /** The news in the file for a client, after the ones it has heard. */
  since(client: { space: string; id: string }, heard: number): { number: number; news: Push }[] {
    const cells = this.#sql.newsSince.all(encodeText(client.space), encodeText(client.id), heard)
    return cells.map(({ number, body }) => ({ number: Number(number), news: JSON.parse(String(body)) }))
  }

  forget(client: { space: string; id: string }, heard: number): number {
    return this.#sql.newsForget.run(encodeText(client.space), encodeText(client.id), heard)
  }
}
