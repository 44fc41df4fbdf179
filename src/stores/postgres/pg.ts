import type { Env } from '../../base/env.js'
import { type Driver, type Ear, type EarHandlers, SILENT_AFTER_MS, type Value } from './driver.js'
import { outOfReach } from './failures.js'
import { quote } from './schema.js'

/** The part of a `Pool` of `pg` that is used. */
export interface PgPool {
  /** Takes a connection out of the pool. */
  connect(): Promise<PgPoolClient>
  /** Closes the pool. */
  end(): Promise<void>
  /** How many connections it may open. */
  readonly options?: { readonly max?: number | undefined }
}

/** The part of a connection of such a pool that is used. */
export interface PgPoolClient {
  /** Runs a statement. */
  query(statement: PgStatement): Promise<{ rows: unknown[] }>
  /** Gives the connection back; with an error or true, ends it. */
  release(destroy?: Error | boolean): void
  /** Hears what happens to the connection. */
  on(event: 'notification' | 'error' | 'end', listener: (news: never) => void): unknown
  /** Hears it no more. */
  off(event: 'error', listener: (news: never) => void): unknown
  /** Lets the process end although the connection is open. */
  unref?(): void
}

/** A statement as `pg` takes it. */
export interface PgStatement {
  /** The SQL. */
  readonly text: string
  /** The values of its placeholders. */
  readonly values?: Value[]
  /** Rows come as arrays. */
  readonly rowMode?: 'array'
}

export function isPgPool(client: object): client is PgPool {
  const { connect, end, query } = client as Record<string, unknown>
  return [connect, end, query].every((method) => typeof method === 'function') && 'totalCount' in client
}

export class PgDriver implements Driver {
  readonly #pool: PgPool
  readonly #ownsPool: boolean
  readonly #env: Env

  constructor(pool: PgPool, ownsPool: boolean, env: Env) {
    this.#pool = pool
    this.#ownsPool = ownsPool
    this.#env = env
  }

  async ask(text: string, values: readonly Value[]): Promise<string | null> {
    const { rows } = await this.#query({ text, values: [...values], rowMode: 'array' })
    return ((rows[0] as unknown[] | undefined)?.[0] ?? null) as string | null
  }

  async run(text: string): Promise<void> {
    await this.#query({ text })
  }

  async listen(channel: string, { onMessage, onEnd }: EarHandlers): Promise<Ear | null> {
    // The only connection there is has to carry the calls.
    if ((this.#pool.options?.max ?? 2) < 2) return null
    const client = await this.#pool.connect()
    let isOver = false
    const close = (): void => {
      if (isOver) return
      isOver = true
      client.release(true)
    }
    const end = (): void => {
      if (isOver) return
      close()
      onEnd()
    }
    client.on('error', end)
    client.on('end', end)
    client.on('notification', (news: { channel: string; payload?: string }) => {
      if (news.channel === channel && !isOver) onMessage(news.payload ?? '')
    })
    try {
      await client.query({ text: `LISTEN ${quote(channel)}` })
    } catch (error) {
      close()
      throw error
    }
    client.unref?.()
    return { close }
  }

  async close(): Promise<void> {
    if (this.#ownsPool) await this.#pool.end()
  }

  /** A connection is given back as it was, or ended: a stranger's time-out must not meet our answer. */
  async #query(statement: PgStatement): Promise<{ rows: unknown[] }> {
    const client = await this.#pool.connect()
    return new Promise((resolve, reject) => {
      let isOver = false
      const finish = (failure: Error | undefined, isAlive: boolean): void => {
        if (isOver) return
        isOver = true
        cancel()
        client.off('error', onError)
        client.release(isAlive ? undefined : failure)
      }
      const onError = (error: Error): void => {
        finish(error, false)
        reject(error)
      }
      const onSilence = (): void => onError(outOfReach(`no answer within ${SILENT_AFTER_MS} ms`))
      const cancel = this.#env.timer(SILENT_AFTER_MS, onSilence, { keepAlive: false })
      client.on('error', onError)
      client.query(statement).then(
        (result) => {
          finish(undefined, true)
          resolve(result)
        },
        (error: Error) => {
          // The server's own errors leave the connection as it was, unless they end it.
          finish(error, (error as { severity?: string }).severity === 'ERROR')
          reject(error)
        },
      )
    })
  }
}
