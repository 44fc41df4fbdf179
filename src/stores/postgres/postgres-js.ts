import { quietly } from '../../base/quietly.js'
import type { ListenHandlers, PostgresDriver, PostgresListener, Value } from './driver.js'
import { outOfReach } from './failures.js'
import type { Sockets } from './socket.js'

/** The part of the `sql` of `postgres` (postgres.js) that this store uses. */
export interface PostgresJs {
  /** Runs a statement. */
  unsafe(text: string, values?: Value[], options?: { prepare?: boolean }): PostgresJsQuery
  /** Hears a channel, on a connection of its own. */
  listen(
    channel: string,
    onMessage: (text: string) => void,
    onListen?: () => void,
  ): Promise<{ unlisten(): Promise<void> }>
  /** Closes all connections. */
  end(options?: { timeout?: number }): Promise<void>
  /** How many connections it may open, besides the one that listens. */
  readonly options?: { readonly max?: number | undefined }
}

/** A statement under way. */
interface PostgresJsQuery extends PromiseLike<unknown> {
  /** With rows as arrays. */
  values(): PromiseLike<unknown>
}

/** The most connections of postgres.js by default. */
const USUAL_CONNECTIONS = 10

export function isPostgresJs(client: unknown): client is PostgresJs {
  if (typeof client !== 'function') return false
  const { unsafe, listen, end } = client as unknown as Record<string, unknown>
  return [unsafe, listen, end].every((method) => typeof method === 'function')
}

export class PostgresJsDriver implements PostgresDriver {
  readonly #sql: PostgresJs
  /** null: the pool is the caller's, and is not closed. */
  readonly #sockets: Sockets | null

  constructor(sql: PostgresJs, sockets: Sockets | null) {
    this.#sql = sql
    this.#sockets = sockets
  }

  get atOnce(): number {
    return Math.max(1, this.#sql.options?.max ?? USUAL_CONNECTIONS)
  }

  /** Without `prepare` it would first ask for the types of the values: one more round trip. */
  async ask(text: string, values: readonly Value[]): Promise<string | null> {
    const rows = (await this.#sql.unsafe(text, [...values], { prepare: true }).values()) as unknown[][]
    // Every statement gives one row. After a lost connection, postgres.js may put it behind a hole,
    // or give none for a statement that was never sent.
    const row = rows.at(-1)
    if (row === undefined) throw outOfReach('the connection has ended')
    return (row[0] ?? null) as string | null
  }

  async run(text: string): Promise<void> {
    await this.#sql.unsafe(text)
  }

  /** postgres.js reconnects by itself; a second `onListen` shows that the connection had ended. */
  async listen(channel: string, { onMessage, onEnd }: ListenHandlers): Promise<PostgresListener | null> {
    let isOver = false
    let isFirst = true
    const onListen = (): void => {
      if (!isFirst && !isOver) {
        close()
        onEnd()
      }
      isFirst = false
    }
    const listening = await this.#sql.listen(channel, (text) => !isOver && onMessage(text), onListen)
    const close = (): void => {
      if (isOver) return
      isOver = true
      quietly(() => listening.unlisten())
    }
    return { close }
  }

  async close(): Promise<void> {
    if (!this.#sockets) return
    await this.#sql.end({ timeout: 1 })
    // Sockets that are still connecting would keep the process alive until they time out.
    this.#sockets.destroy()
  }
}
