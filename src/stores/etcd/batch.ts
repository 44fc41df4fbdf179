import type { EtcdClient, EtcdTransaction, OperationResult } from '../../drivers/etcd/index.js'
import { EtcdError } from '../../drivers/etcd/index.js'

/** Below the servers' `--max-txn-ops`, with room for what is inside. */
const MOST_IN_ONE = 64

/** The answer to one transaction of a batch. */
export interface BatchAnswer {
  readonly succeeded: boolean
  readonly results: readonly OperationResult[]
  readonly revision: number
}

interface Entry {
  readonly transaction: EtcdTransaction
  readonly resolve: (answer: BatchAnswer) => void
  readonly reject: (error: unknown) => void
}

/** Sends what is asked for in one turn of the event loop as one transaction of transactions. */
export class TransactionBatch {
  readonly #client: EtcdClient
  #entries: Entry[] = []

  constructor(client: EtcdClient) {
    this.#client = client
  }

  run(transaction: EtcdTransaction): Promise<BatchAnswer> {
    return new Promise((resolve, reject) => {
      this.#entries.push({ transaction, resolve, reject })
      if (this.#entries.length === 1) process.nextTick(() => this.#flush())
    })
  }

  #flush(): void {
    const entries = this.#entries
    this.#entries = []
    const [only] = entries
    if (entries.length === 1 && only) return this.#sendAlone(only)
    // What is read has the revision of the whole: it has to show what the others change.
    entries.sort((one, other) => Number(reads(one)) - Number(reads(other)))
    for (let from = 0; from < entries.length; from += MOST_IN_ONE)
      void this.#sendTogether(entries.slice(from, from + MOST_IN_ONE))
  }

  async #sendTogether(entries: readonly Entry[]): Promise<void> {
    try {
      const success = entries.map(({ transaction }) => ({ type: 'txn', ...transaction }) as const)
      const { header, results } = await this.#client.transaction({ success })
      entries.forEach(({ resolve }, index) => {
        const { succeeded, results: inner } = results[index] as OperationResult
        resolve({ succeeded, results: inner, revision: header.revision })
      })
    } catch (error) {
      // One of them was refused, and with it all: each has to hear its own error.
      const isRefused = error instanceof EtcdError && !error.maybeDone && error.code !== 'CLOSED'
      for (const entry of entries)
        if (isRefused) this.#sendAlone(entry)
        else entry.reject(error)
    }
  }

  #sendAlone({ transaction, resolve, reject }: Entry): void {
    this.#client
      .transaction(transaction)
      .then(
        ({ succeeded, results, header }) => resolve({ succeeded, results, revision: header.revision }),
        reject,
      )
  }
}

function reads({ transaction }: Entry): boolean {
  return transaction.success.some(({ type }) => type === 'range')
}
