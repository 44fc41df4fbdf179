import { HoldfastError } from '../../../base/errors.js'
import type { Value } from '../driver.js'
import type { PgPool, PgPoolClient } from '../pg.js'
import type { Transaction, Transactions } from './transactions.js'

/** Transactions on connections of a `Pool` of `pg`. */
export class PgTransactions implements Transactions {
  readonly #pool: PgPool

  constructor(pool: PgPool) {
    this.#pool = pool
  }

  async run<T>(begin: string, work: (transaction: Transaction) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect()
    // Without a listener the loss of the connection would end the process; the statements tell of it.
    let loss: Error | undefined
    const onError = (error: Error): void => {
      loss = error
    }
    client.on('error', onError)
    try {
      await client.query({ text: begin })
      const result = await work(new PgTransaction(client))
      if (loss) throw loss
      await commit(client)
      return result
    } catch (error) {
      await client.query({ text: 'ROLLBACK' }).catch((failure: Error) => {
        loss ??= failure
      })
      throw error
    } finally {
      client.off('error', onError)
      client.release(loss)
    }
  }
}

async function commit(client: PgPoolClient): Promise<void> {
  const reply = await client.query({ text: 'COMMIT' })
  // A statement has failed, and the work has gone on as if it had not: the server rolls back, and says so by this word only.
  if (reply.command === 'ROLLBACK')
    throw new HoldfastError(
      'STORE_UNAVAILABLE',
      'The transaction was rolled back because a statement in it had failed; let its error pass, or undo it with a nested run',
      { store: 'postgres' },
    )
}

class PgTransaction implements Transaction {
  readonly own: PgPoolClient
  readonly #depth: number

  constructor(client: PgPoolClient, depth = 0) {
    this.own = client
    this.#depth = depth
  }

  async change(text: string, values: readonly Value[]): Promise<void> {
    await this.own.query({ text, values: [...values] })
  }

  async part<T>(work: (inner: Transaction) => Promise<T>): Promise<T> {
    const name = `holdfast_${this.#depth}`
    await this.own.query({ text: `SAVEPOINT ${name}` })
    try {
      const result = await work(new PgTransaction(this.own, this.#depth + 1))
      await this.own.query({ text: `RELEASE SAVEPOINT ${name}` })
      return result
    } catch (error) {
      // On a connection that is lost this fails, too; what was first is the news.
      await this.own.query({ text: `ROLLBACK TO SAVEPOINT ${name}` }).catch(() => {})
      throw error
    }
  }
}
