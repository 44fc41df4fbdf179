import { createHash } from 'node:crypto'
import type { Cancel, Env } from '../../base/env.js'
import { quietly } from '../../base/quietly.js'
import {
  type ListenHandlers,
  type PostgresDriver,
  type PostgresListener,
  SILENT_AFTER_MS,
  type Value,
} from './driver.js'
import { isUnprepared, isUsableAfter, outOfReach } from './failures.js'
import { quote } from './schema.js'
import type { Sockets } from './socket.js'

/** The part of a `Pool` of `pg` that this store uses. */
export interface PgPool {
  /** Takes a connection out of the pool. */
  connect(): Promise<PgPoolClient>
  /** Closes the pool. */
  end(): Promise<void>
  /** How many connections it may open. */
  readonly options?: { readonly max?: number | undefined }
}

/** The part of a connection of such a pool that this store uses. */
export interface PgPoolClient {
  /** Runs a statement. */
  query(statement: PgStatement): Promise<PgResult>
  /** Returns the connection to the pool; with an error or true, ends it. */
  release(destroy?: Error | boolean): void
  /** Hears what happens to the connection. */
  on(event: 'notification' | 'error' | 'end', listener: (news: never) => void): unknown
  /** Hears it no more. */
  off(event: 'notification' | 'error' | 'end', listener: (news: never) => void): unknown
  /** Keeps the process alive while the connection is open. */
  ref?(): void
  /** Lets the process end while the connection is open. */
  unref?(): void
}

interface PgResult {
  readonly rows: unknown[]
  readonly command: string
}

/** A statement as `pg` takes it. */
interface PgStatement {
  /** The SQL. */
  readonly text: string
  /** Keeps it prepared under this name, for as long as the connection lives. */
  readonly name?: string
  /** The values of its placeholders. */
  readonly values?: Value[]
  /** Rows come as arrays. */
  readonly rowMode?: 'array'
}

const END_WITHIN_MS = 1000
/** The most connections of a pool of `pg` by default. */
const USUAL_CONNECTIONS = 10

export function isPgPool(client: unknown): client is PgPool {
  if (typeof client !== 'object' || client === null) return false
  const { connect, end, query } = client as Record<string, unknown>
  return [connect, end, query].every((method) => typeof method === 'function') && 'totalCount' in client
}

export class PgDriver implements PostgresDriver {
  readonly #pool: PgPool
  /** null: the pool is the caller's, and is not closed. */
  readonly #sockets: Sockets | null
  readonly #env: Env
  /** Ends the connections that wait for an answer. */
  readonly #asking = new Set<() => void>()
  /** Statements are prepared once per connection, which saves a quarter of the server's work. */
  #isPreparing = true

  constructor(pool: PgPool, sockets: Sockets | null, env: Env) {
    this.#pool = pool
    this.#sockets = sockets
    this.#env = env
  }

  get atOnce(): number {
    return Math.max(1, (this.#pool.options?.max ?? USUAL_CONNECTIONS) - 1)
  }

  async ask(text: string, values: readonly Value[]): Promise<string | null> {
    const statement: PgStatement = { text, values: [...values], rowMode: 'array' }
    const { rows } = await (this.#isPreparing ? this.#queryPrepared(statement) : this.#query(statement))
    return ((rows[0] as unknown[] | undefined)?.[0] ?? null) as string | null
  }

  /**
   * Behind a pooler in transaction mode, each call may reach another session. One that lacks the
   * prepared statement has run nothing.
   */
  async #queryPrepared(statement: PgStatement): Promise<PgResult> {
    try {
      return await this.#query({ ...statement, name: nameOf(statement.text) })
    } catch (error) {
      if (!isUnprepared(error)) throw error
      this.#isPreparing = false
      return this.#query(statement)
    }
  }

  async run(text: string): Promise<void> {
    await this.#query({ text })
  }

  async listen(channel: string, { onMessage, onEnd }: ListenHandlers): Promise<PostgresListener | null> {
    // The only connection has to carry the calls.
    if ((this.#pool.options?.max ?? 2) < 2) return null
    const client = await this.#pool.connect()
    let isOver = false
    const end = (): void => {
      if (isOver) return
      isOver = true
      leave(true)
      onEnd()
    }
    const hear = (news: { channel: string; payload?: string }): void => {
      if (news.channel === channel && !isOver) onMessage(news.payload ?? '')
    }
    const leave = (isDestroyed: boolean): void => {
      quietly(() => {
        client.off('notification', hear)
        client.off('end', end)
        client.off('error', end)
        client.ref?.()
      })
      quietly(() => client.release(isDestroyed))
    }
    try {
      client.on('notification', hear)
      client.on('end', end)
      client.on('error', end)
      await client.query({ text: `LISTEN ${quote(channel)}` })
    } catch (error) {
      if (!isOver) leave(true)
      isOver = true
      throw error
    }
    quietly(() => client.unref?.())
    const unlisten = async () => client.query({ text: `UNLISTEN ${quote(channel)}` })
    const close = (): void => {
      if (isOver) return
      isOver = true
      // The pool gets the connection back without LISTEN. Do not wait: the server may hang.
      unlisten().then(
        () => leave(false),
        () => leave(true),
      )
    }
    return { close }
  }

  async close(): Promise<void> {
    if (!this.#sockets) return
    // A hung server never completes `end()`.
    let cancel: Cancel = () => {}
    const patience = new Promise<void>((resolve) => {
      cancel = this.#env.timer(END_WITHIN_MS, resolve, { keepAlive: true })
    })
    await Promise.race([this.#pool.end(), patience])
    cancel()
    for (const abandon of [...this.#asking]) abandon()
    // Sockets that are still connecting would keep the process alive until they time out.
    this.#sockets.destroy()
  }

  /** Ends a connection that has not answered: a late answer must not reach its next user. */
  async #query(statement: PgStatement): Promise<PgResult> {
    const client = await this.#pool.connect()
    return new Promise((resolve, reject) => {
      let isOver = false
      const finish = (failure: Error | undefined, isAlive: boolean): void => {
        if (isOver) return
        isOver = true
        cancel()
        this.#asking.delete(abandon)
        quietly(() => client.off('error', onError))
        quietly(() => client.release(isAlive ? undefined : failure))
      }
      const onError = (error: Error): void => {
        finish(error, false)
        reject(error)
      }
      const onSilence = (): void => onError(outOfReach(`no answer within ${SILENT_AFTER_MS} ms`))
      const abandon = (): void => onError(outOfReach('no answer before this client was closed'))
      this.#asking.add(abandon)
      const cancel = this.#env.timer(SILENT_AFTER_MS, onSilence, { keepAlive: false })
      const query = async (): Promise<PgResult> => {
        client.on('error', onError)
        return client.query(statement)
      }
      query().then(
        (result) => {
          finish(undefined, true)
          resolve(result)
        },
        (error: Error) => {
          finish(error, isUsableAfter(error))
          reject(error)
        },
      )
    })
  }
}

const names = new Map<string, string>()

/** A hash of the text: behind a pooler, a session that knows the name knows the right text. */
function nameOf(text: string): string {
  let name = names.get(text)
  if (name === undefined) {
    name = `holdfast_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`
    names.set(text, name)
  }
  return name
}
