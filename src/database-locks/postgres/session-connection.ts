import type { Value } from '../../stores/postgres/driver.js'
import { isAnswer, outOfReach } from '../../stores/postgres/failures.js'
import type { PgPoolClient } from '../../stores/postgres/pg.js'
import type { ConnectionEvents, SessionConnection } from '../sessions/session.js'

/** The server process of each connection, also from earlier sessions. */
const pids = new WeakMap<PgPoolClient, number>()

/** A connection of a `Pool` of `pg`. */
export class PgSessionConnection implements SessionConnection {
  readonly events: ConnectionEvents
  readonly unreachable = outOfReach
  readonly #client: PgPoolClient
  #pid: number | undefined

  constructor(client: PgPoolClient) {
    this.#client = client
    this.events = client as unknown as ConnectionEvents
  }

  /** The process ID of the server, once it is known. */
  get pid(): number | undefined {
    return this.#pid ?? pids.get(this.#client)
  }

  /** Whether all answers of this session came from that process. Behind a pooler they may not. */
  isProcess(pid: number): boolean {
    this.#pid ??= pid
    pids.set(this.#client, this.#pid)
    return this.#pid === pid
  }

  /** Resolves with the first column of the first row. */
  async ask(text: string, values: readonly Value[] = []): Promise<string | null> {
    const { rows } = await this.#client.query({ text, values: [...values], rowMode: 'array' })
    return ((rows[0] as unknown[] | undefined)?.[0] ?? null) as string | null
  }

  /** Several statements in one text. */
  async script(text: string): Promise<void> {
    await this.#client.query({ text })
  }

  ping(): Promise<unknown> {
    return this.ask('SELECT 1')
  }

  release(): void {
    this.#client.release(false)
  }

  destroy(): void {
    this.#client.release(true)
  }

  /** Without an answer, the client has given up a statement that the server may still run. */
  isFatal(error: unknown): boolean {
    return !isAnswer(error)
  }
}
