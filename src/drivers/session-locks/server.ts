import type { HoldfastError } from '../../base/errors.js'

/** One connection of a pool that has locks of its own: they end with it. Statements go one after the other. */
export interface LockSession {
  readonly isOver: boolean
  /** Gives the connection back, after what is under way. Nothing may be locked on it any more. */
  close(): void
  /** Ends the connection, and with it all its locks. */
  destroy(reason: Error): void
}

/** What is locked: its name, and the key that the server knows it by. */
export interface Lock {
  readonly key: string
  readonly name: string
}

/** What session locks need of a database server. */
export interface LockServer<S extends LockSession> {
  /** How many connections the pool may have; 0: unknown. */
  poolSize(): number
  /** Takes a connection out of the pool. `onEnd` is called once if it ends before it is closed. */
  open(onEnd: (reason: Error) => void): Promise<S>
  /** Takes those of the locks that are free, and gives their fences by key. If it rejects, none of them is locked. */
  tryAll(session: S, locks: readonly Lock[]): Promise<ReadonlyMap<string, number>>
  /**
   * Waits in the server's own queue and gives the fence; null: so long it was not free, or the wait was cancelled. If it rejects, nothing is
   * locked. The session holds nothing meanwhile: it could not give it back, and the server would see deadlocks.
   */
  wait(session: S, lock: Lock, ms: number): Promise<number | null>
  /** Ends that wait from another session, as well as the server permits. A wait that is over already is left alone. */
  cancel(waiting: S, lock: Lock, by: S): Promise<void>
  /** Whether the session had it. */
  unlock(session: S, key: string): Promise<boolean>
  /** Resolves when the server has answered anything. */
  probe(session: S): Promise<unknown>
  /** In our words. */
  explain(error: unknown): HoldfastError
  /** Whether it is asked again for a while before the error is told. `session` is where it failed; undefined: no connection was opened. */
  mayPass(error: unknown, session: S | undefined): boolean
}
