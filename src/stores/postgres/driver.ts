/** What this store needs of a PostgreSQL driver, whichever it is. */
export interface Driver {
  /** How many statements may be under way at once, beside the connection for messages. */
  readonly atOnce: number
  /** One statement in a transaction of its own; gives the first column of the first row. */
  ask(sql: string, values: readonly Value[]): Promise<string | null>
  /** Several statements in one text, sent together. */
  run(script: string): Promise<void>
  /** Opens the connection for messages; null: there is none to spare. It does not come back by itself: `onEnd` is called once when it has ended. */
  listen(channel: string, handlers: EarHandlers): Promise<Ear | null>
  /** Closes what this store has opened; never what the user did. */
  close(): Promise<void>
}

/** Values travel as text: the routines say what they are. */
export type Value = string | null

export interface EarHandlers {
  onMessage(text: string): void
  onEnd(): void
}

/** A connection that hears messages. */
export interface Ear {
  close(): void
}

/** A connection that answers nothing for so long is taken for dead, and replaced. */
export const SILENT_AFTER_MS = 30_000
