import { quietly } from '../../base/quietly.js'
import type { Driver, Ear, EarHandlers, Value } from './driver.js'
import type { Sockets } from './socket.js'

/** The part of the `sql` of `postgres` (postgres.js) that is used. */
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
  /** How many connections it may open, beside the one that listens. */
  readonly options?: { readonly max?: number | undefined }
}

/** A statement under way. */
interface PostgresJsQuery extends PromiseLike<unknown> {
  /** With rows as arrays. */
  values(): PromiseLike<unknown>
}

/** What postgres.js opens at most, unless it is told otherwise. */
const USUAL_CONNECTIONS = 10

export function isPostgresJs(client: unknown): client is PostgresJs {
  if (typeof client !== 'function') return false
  const { unsafe, listen, end } = client as unknown as Record<string, unknown>
  return [unsafe, listen, end].every((method) => typeof method === 'function')
}

export class PostgresJsDriver implements Driver {
  readonly #sql: PostgresJs
  /** null: it is the caller's, and is not closed. */
  readonly #sockets: Sockets | null

  constructor(sql: PostgresJs, sockets: Sockets | null) {
    this.#sql = sql
    this.#sockets = sockets
  }

  get atOnce(): number {
    return Math.max(1, this.#sql.options?.max ?? USUAL_CONNECTIONS)
  }

  /** Without `prepare` it would ask the server for the types of the values first: one round trip more for each call. */
  async ask(text: string, values: readonly Value[]): Promise<string | null> {
    const rows = (await this.#sql.unsafe(text, [...values], { prepare: true }).values()) as unknown[][]
    return (rows[0]?.[0] ?? null) as string | null
  }

  async run(text: string): Promise<void> {
    await this.#sql.unsafe(text)
  }

  /** It mends the connection by itself, and says so by listening again. */
  async listen(channel: string, { onMessage, onEnd }: EarHandlers): Promise<Ear | null> {
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
    // What is under way is nobody's business any more.
    if (!this.#sockets) return
    await this.#sql.end({ timeout: 1 })
    // Those that are being opened would keep the process alive until they are taken for dead.
    this.#sockets.destroy()
  }
}
