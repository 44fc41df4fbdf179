import type { Push } from '../../contract/store.js'

/** News for one client. */
export interface Message {
  readonly space: string
  /** Where it is: `WIRE ID`. */
  readonly client: string
  readonly news: Push
}

/** What a transaction has to tell, kept until it is durable. */
export class Outbox {
  #untold: Message[] = []

  /** Forgets what a transaction that did not come about would have told. */
  begin(): void {
    this.#untold = []
  }

  tell(space: string, client: string, news: Push): void {
    this.#untold.push({ space, client, news })
  }

  take(): Message[] {
    const untold = this.#untold
    this.#untold = []
    return untold
  }
}
