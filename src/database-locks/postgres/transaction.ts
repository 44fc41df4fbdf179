import { aborted } from '../../base/abort.js'
import type { Env } from '../../base/env.js'
import { encodeText } from '../../base/text.js'
import { isBusy } from '../../stores/postgres/failures.js'
import { inSchema } from '../../stores/postgres/schema.js'
import type { LockTransaction, LockWait } from '../transactions/backend.js'
import type { PostgresStatements } from './statements.js'

/** A wait with a signal is cut into pieces: the server ends a wait only at its timeout. */
const PIECE_MS = 1000
/** The longest that PostgreSQL takes, some 25 days. A longer wait has no limit. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1
const PIECES_SAVEPOINT = 'holdfast_pieces'

/** A transaction that locks rows of `row_lock`. */
export class PostgresTransaction implements LockTransaction {
  readonly #statements: PostgresStatements
  readonly #schema: string
  readonly #env: Env

  constructor(statements: PostgresStatements, schema: string, env: Env) {
    this.#statements = statements
    this.#schema = schema
    this.#env = env
  }

  get client(): unknown {
    return this.#statements.client
  }

  part<T>(work: (inner: LockTransaction) => Promise<T>): Promise<T> {
    return this.#statements.part((inner) => work(new PostgresTransaction(inner, this.#schema, this.#env)))
  }

  async lock(name: string, { deadline, signal }: LockWait): Promise<void> {
    const leftMs = (): number => Math.max(0, deadline - this.#env.now())
    if (!signal) return this.#lockWithin(this.#statements, name, leftMs())
    for (let piece = 1; ; piece++) {
      const left = leftMs()
      try {
        await this.#statements.part((inner) => this.#lockWithin(inner, name, Math.min(left, PIECE_MS)))
        if (!signal.aborted) return
      } catch (error) {
        const isWaiting = isBusy(error) && left > PIECE_MS
        if (!isWaiting && !signal.aborted) throw error
      }
      if (signal.aborted) throw aborted(name, signal)
      // A failed part leaves its savepoint behind. This removes it, so that they do not pile up.
      const sql = piece === 1 ? `SAVEPOINT ${PIECES_SAVEPOINT}` : `ROLLBACK TO SAVEPOINT ${PIECES_SAVEPOINT}`
      await this.#statements.run(sql, [])
    }
  }

  async #lockWithin(statements: PostgresStatements, name: string, waitMs: number): Promise<void> {
    // A lock_timeout of zero means no limit, whatever the role or the database has.
    const timeout = waitMs > LONGEST_TIMEOUT_MS ? 0 : Math.max(1, Math.ceil(waitMs))
    await statements.run(inSchema('SELECT holdfast.lock_row($1, $2)', this.#schema), [
      encodeText(name),
      String(timeout),
    ])
  }
}
