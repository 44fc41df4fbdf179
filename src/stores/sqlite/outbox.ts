import type { Push } from '../../contract/store.js'

/** A push for one client. */
export interface Message {
  readonly space: string
  /** Its address: `SOCKET ID`. */
  readonly client: string
  readonly news: Push
}

/** The pushes of a transaction, collected until it is durable. */
export class Outbox {
  #messages: Message[] = []

  /** Drops the pushes of a transaction that was rolled back. */
  clear(): void {
    this.#messages = []
  }

  add(space: string, client: string, news: Push): void {
    this.#messages.push({ space, client, news })
  }

  take(): Message[] {
    const messages = this.#messages
    this.#messages = []
    return messages
  }
}
