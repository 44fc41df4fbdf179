import type { HoldfastError } from '../../base/errors.js'
import type { DatabaseSession, SessionConnection } from './session.js'

/** A lock of a session: its name, and the key that the server knows it by. */
export interface SessionLockId {
  readonly key: string
  readonly name: string
}

/** What session locks need of a database. */
export interface SessionBackend<C extends SessionConnection> {
  /** The name that errors carry, such as `postgres`. */
  readonly store: string
  /** How many connections the pool may have; 0: unknown. */
  poolSize(): number
  /** Takes a connection out of the pool. Calls `onEnd` once if it ends before it is closed. */
  open(onEnd: (reason: HoldfastError) => void): Promise<DatabaseSession<C>>
  /** Takes the free locks; resolves with their fences by key. Takes none if it rejects. */
  tryAll(session: DatabaseSession<C>, locks: readonly SessionLockId[]): Promise<ReadonlyMap<string, number>>
  /**
   * Waits in the server's queue; resolves with the fence, or with null after `ms` or a cancel.
   * Takes nothing if it rejects. The session must hold no other lock: it could not release it
   * while it waits, and the server could see deadlocks.
   */
  wait(session: DatabaseSession<C>, lock: SessionLockId, ms: number): Promise<number | null>
  /** Ends that wait through another session, if the server permits it. Ends nothing else. */
  cancel(waiting: DatabaseSession<C>, lock: SessionLockId, by: DatabaseSession<C>): Promise<void>
  /** Resolves with whether the session held it. */
  unlock(session: DatabaseSession<C>, key: string): Promise<boolean>
  /** Turns a driver's error into one of ours. Ours stay unchanged. */
  explain(error: unknown): HoldfastError
  /** Whether to retry for a while before waiters are told. No `session`: none could be opened. */
  isTransient(error: unknown, session: DatabaseSession<C> | undefined): boolean
}
