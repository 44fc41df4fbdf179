import type { ConnectionOptions } from 'node:tls'
import type { Env } from '../../base/env.js'
import { MemcachedLink, type MetaListener } from './connection.js'
import { MemcachedError } from './errors.js'
import type { MetaReply } from './replies.js'
import type { MemcachedAddress } from './servers.js'

export interface MemcachedLogin {
  readonly user: string
  readonly password: string
}

export interface MemcachedServerOptions extends MemcachedAddress {
  readonly env: Env
  /** How long a connection or an answer may take. */
  readonly timeoutMs: number
  /** For servers that are started with `-Y`. */
  readonly login?: MemcachedLogin | undefined
  readonly tls?: ConnectionOptions | undefined
  /** The connection was lost, after it had been used. */
  onLoss?(): void
}

/** The server walks through its keys in small steps, with pauses. */
const KEYS_TIMEOUT_MS = 15_000

/** The values of `stats`, by name. */
export type MemcachedStats = ReadonlyMap<string, string>

/**
 * One memcached server, by its text protocol with meta commands. Connects at the first command, and
 * again at the first one after a loss; never repeats a command by itself.
 */
export class MemcachedServer {
  /** For messages and hashing: `host:port`. */
  readonly name: string
  readonly #options: MemcachedServerOptions
  #link: MemcachedLink | undefined
  #isClosed = false

  constructor(options: MemcachedServerOptions) {
    this.#options = options
    this.name = `${options.host}:${options.port}`
  }

  /** As `meta`, without a promise. */
  send(command: string, listener: MetaListener): void {
    if (this.#isClosed) return listener.reject(this.#closedError())
    this.#link ??= this.#connect()
    this.#link.send(command, listener)
  }

  /** A meta command with its data and line ends, in ASCII: `mg key c v\r\n`. */
  meta(command: string): Promise<MetaReply> {
    return new Promise((resolve, reject) => this.send(command, { kind: 'meta', resolve, reject }))
  }

  /** A command that is answered by lines up to END. */
  list(command: string): Promise<readonly string[]> {
    if (this.#isClosed) return Promise.reject(this.#closedError())
    this.#link ??= this.#connect()
    return this.#link.list(command)
  }

  /** `stats`, or one of its groups: `settings`. */
  async stats(group = ''): Promise<MemcachedStats> {
    const lines = await this.list(`stats${group && ` ${group}`}\r\n`)
    return new Map(lines.map((line) => splitStat(line)))
  }

  /**
   * The keys of all items. On a connection of its own: the server accepts no other command before
   * this one, and answers nothing else meanwhile. Not by `metadump all`: it misses items that are
   * written at the same time.
   */
  async keys(): Promise<string[]> {
    if (this.#isClosed) throw this.#closedError()
    const link = new MemcachedLink({ ...this.#options, timeoutMs: KEYS_TIMEOUT_MS }, () => {})
    try {
      const { login } = this.#options
      if (login) await this.#logIn(link, login)
      const lines = await link.list('lru_crawler metadump hash\r\n')
      return lines.map((line) => decodeKey(/^key=(\S*)/.exec(line)?.[1] ?? ''))
    } finally {
      link.end(this.#closedError())
    }
  }

  /** Allows calls again after `close`. */
  open(): void {
    this.#isClosed = false
  }

  close(): void {
    this.#isClosed = true
    this.#link?.end(this.#closedError())
  }

  #connect(): MemcachedLink {
    const link = new MemcachedLink(this.#options, () => {
      if (this.#link !== link) return
      this.#link = undefined
      this.#options.onLoss?.()
    })
    const { login } = this.#options
    // What fails is reported to the callers: the connection ends with it.
    if (login) this.#logIn(link, login).catch(() => {})
    return link
  }

  /**
   * The first command of a connection, before what the callers send. The server takes any `set` for
   * it; where no login is asked for, it must not leave a secret in the cache.
   */
  async #logIn(link: MemcachedLink, { user, password }: MemcachedLogin): Promise<void> {
    const secret = Buffer.from(`${user} ${password}`).toString('latin1')
    await link.meta(`set holdfast:login 0 -1 ${secret.length}\r\n${secret}\r\n`)
  }

  #closedError(): MemcachedError {
    return new MemcachedError('CLOSED', `The client of ${this.name} is closed`)
  }
}

/** Keys of other applications may be any bytes. Those stay as the server writes them. */
function decodeKey(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function splitStat(line: string): [string, string] {
  const [, name = '', value = ''] = /^STAT (\S+) ?(.*)$/s.exec(line) ?? []
  return [name, value]
}
