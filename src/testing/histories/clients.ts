import { systemEnv } from '../../base/env.js'
import type { Connection, Push, Store } from '../../contract/store.js'

/** How long a push may take before it counts as missing, for all histories of one property. */
export interface Patience {
  ms: number
}

/**
 * Once one has been missing, the same history is only being shortened, over and over: no long waits
 * any more.
 */
const SHORT_PATIENCE_MS = 50

/** One client of a history, with the news that it has been told and has not yet accounted for. */
export interface HistoryClient {
  readonly id: string
  readonly connection: Connection
  news: Push[]
}

/** The clients of a history. One that closes is followed by another in its place. */
export class HistoryClients {
  readonly #store: Store
  // A space of its own for each history: the store may be one that outlives it.
  readonly #space = `history-${systemEnv.id()}`
  readonly #patience: Patience
  readonly #clients: HistoryClient[]
  /** They must hear nothing any more. */
  readonly #closed: HistoryClient[] = []
  /** Only looks. */
  readonly inspector: Connection
  #connected = 0

  constructor(store: Store, count: number, patience: Patience) {
    this.#store = store
    this.#patience = patience
    this.#clients = Array.from({ length: count }, () => this.#connect())
    this.inspector = this.#connect().connection
  }

  get all(): readonly HistoryClient[] {
    return this.#clients
  }

  at(index: number): HistoryClient {
    const client = this.#clients[index]
    if (!client) throw new Error(`There is no client ${index}`)
    return client
  }

  replace(index: number): void {
    this.#closed.push(this.at(index))
    this.#clients[index] = this.#connect()
  }

  /** Waits until each client has been told at least so many things, or until patience is over. */
  async told(counts: ReadonlyMap<string, number>): Promise<void> {
    const isComplete = (): boolean =>
      this.#clients.every(({ id, news }) => news.filter(isOfInterest).length >= (counts.get(id) ?? 0))
    const until = systemEnv.now() + this.#patience.ms
    while (!isComplete() && systemEnv.now() < until) await tick()
    if (!isComplete()) this.#patience.ms = Math.min(this.#patience.ms, SHORT_PATIENCE_MS)
  }

  /** What each client has been told since the last time. */
  takeNews(): Map<string, Push[]> {
    const everyone = [...this.#clients, ...this.#closed]
    const news = everyone.map((client) => [client.id, client.news.filter(isOfInterest)] as const)
    for (const client of everyone) client.news = []
    return new Map(news)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#clients.map(({ connection }) => connection.close()), this.inspector.close()])
  }

  #connect(): HistoryClient {
    this.#connected++
    const id = `c${this.#connected}-${this.#space}`
    const client: HistoryClient = {
      id,
      news: [],
      connection: this.#store.connect({
        id,
        space: this.#space,
        push: (news) => client.news.push(news),
      }),
    }
    return client
  }
}

/**
 * "Something may have been missed" may come at any moment; and that a hold is waited for is not
 * told by every store, nor at once. Neither must be taken for the news that is waited for.
 */
function isOfInterest(news: Push): boolean {
  return news.type !== 'gap' && news.type !== 'wanted'
}

function tick(): Promise<void> {
  return new Promise((resolve) => {
    systemEnv.timer(0, resolve, { keepAlive: true })
  })
}
