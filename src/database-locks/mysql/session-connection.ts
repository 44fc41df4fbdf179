import type { Changed, Lent } from '../../stores/mysql/driver.js'
import { isConnectionOver, outOfReach } from '../../stores/mysql/failures.js'
import type { ConnectionEvents, SessionConnection } from '../sessions/session.js'

/** A connection of a pool of mysql2 or mariadb. */
export class MysqlSessionConnection implements SessionConnection {
  readonly events: ConnectionEvents
  readonly isFatal = isConnectionOver
  readonly unreachable = outOfReach
  /** Marks the statement that waits, so that another session can find and cancel it. */
  waitMark: string | undefined
  readonly #connection: Lent

  constructor(connection: Lent) {
    this.#connection = connection
    this.events = connection.own as ConnectionEvents
  }

  /** Resolves with the first column of the rows. */
  query(sql: string): Promise<string[]> {
    return this.#connection.query(sql)
  }

  /** Runs an UPDATE, INSERT or KILL. */
  change(sql: string): Promise<Changed> {
    return this.#connection.change(sql)
  }

  ping(): Promise<unknown> {
    return this.query('SELECT 1')
  }

  release(): void {
    this.#connection.release()
  }

  destroy(): void {
    this.#connection.destroy()
  }
}
