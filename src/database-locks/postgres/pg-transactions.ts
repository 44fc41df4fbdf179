import { HoldfastError } from '../../base/errors.js'
import type { Value } from '../../stores/postgres/driver.js'
import type { PgPool, PgPoolClient } from '../../stores/postgres/pg.js'
import type { PostgresStatements, RunPostgresTransaction } from './statements.js'

/** Runs transactions on connections of a `Pool` of `pg`. */
export function pgTransactions(pool: PgPool): RunPostgresTransaction {
  return async (modes, work) => {
    const client = await pool.connect()
    let loss: Error | undefined
    const onError = (error: Error): void => {
      loss = error
    }
    // Without a listener the loss of the connection would end the process.
    client.on('error', onError)
    try {
      await client.query({ text: `BEGIN ${modes}` })
      const result = await work(new PgStatements(client))
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

/** The server answers COMMIT with ROLLBACK if a statement failed and the work ignored its error. */
async function commit(client: PgPoolClient): Promise<void> {
  const reply = await client.query({ text: 'COMMIT' })
  if (reply.command !== 'ROLLBACK') return
  const message =
    'The server rolled the transaction back because a statement in it failed; let the error of the statement pass, or run the statement in a nested run'
  throw new HoldfastError('STORE_UNAVAILABLE', message, { store: 'postgres' })
}

class PgStatements implements PostgresStatements {
  readonly client: PgPoolClient
  readonly #depth: number

  constructor(client: PgPoolClient, depth = 0) {
    this.client = client
    this.#depth = depth
  }

  async run(text: string, values: readonly Value[]): Promise<void> {
    await this.client.query({ text, values: [...values] })
  }

  async part<T>(work: (inner: PostgresStatements) => Promise<T>): Promise<T> {
    const savepoint = `holdfast_${this.#depth}`
    await this.run(`SAVEPOINT ${savepoint}`, [])
    try {
      const result = await work(new PgStatements(this.client, this.#depth + 1))
      await this.run(`RELEASE SAVEPOINT ${savepoint}`, [])
      return result
    } catch (error) {
      // On a lost connection this fails as well; the first error tells more.
      await this.run(`ROLLBACK TO SAVEPOINT ${savepoint}`, []).catch(() => {})
      throw error
    }
  }
}
