/** What this store needs of a PostgreSQL driver, whichever package it is. */
export interface PostgresDriver {
  /** How many statements may be under way at once, besides the connection for messages. */
  readonly atOnce: number
  /** One statement in a transaction of its own; gives the first column of the first row. */
  ask(sql: string, values: readonly Value[]): Promise<string | null>
  /** Several statements in one text, sent together. */
  run(script: string): Promise<void>
  /**
   * Opens the connection for messages; null: the pool has none to spare. It is not opened again
   * when it ends: `onEnd` is then called once.
   */
  listen(channel: string, handlers: ListenHandlers): Promise<PostgresListener | null>
  /** Closes what this store has opened; never what the user did. */
  close(): Promise<void>
}

/** Values travel as text: the routines know their types. */
export type Value = string | null

export interface ListenHandlers {
  onMessage(text: string): void
  onEnd(): void
}

/** A connection that hears messages. */
export interface PostgresListener {
  close(): void
}

/** A connection that does not answer for this long is taken for dead, and replaced. */
export const SILENT_AFTER_MS = 30_000
