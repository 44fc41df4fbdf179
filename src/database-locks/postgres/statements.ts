import type { Value } from '../../stores/postgres/driver.js'

/** A transaction of a PostgreSQL driver, or a part of one. */
export interface PostgresStatements {
  /** The driver's own transaction. */
  readonly client: unknown
  run(sql: string, values: readonly Value[]): Promise<void>
  /** Runs a part in a savepoint, and rolls it back if it rejects. */
  part<T>(work: (inner: PostgresStatements) => Promise<T>): Promise<T>
}

/** Begins a transaction, runs the work and commits; rolls back if the work rejects. */
export type RunPostgresTransaction = <T>(
  /** What follows BEGIN, such as `ISOLATION LEVEL SERIALIZABLE`. */
  modes: string,
  work: (statements: PostgresStatements) => Promise<T>,
) => Promise<T>
