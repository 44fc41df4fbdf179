import type { ConnectionOptions } from 'node:tls'
import type { Env } from '../../base/env.js'
import { MemcachedLink } from './connection.js'
import { MemcachedError } from './errors.js'
import type { MetaReply, Reply, ReplyKind } from './replies.js'
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

  /** A meta command with its data and line ends: `mg key c v\r\n`. */
  async meta(command: string): Promise<MetaReply> {
    const reply = await this.#send(command, 'meta')
    if ('meta' in reply) return reply.meta
    throw this.#refused(reply)
  }

  /** A command that is answered by lines up to END. */
  async list(command: string): Promise<readonly string[]> {
    const reply = await this.#send(command, 'list')
    if ('lines' in reply) return reply.lines
    throw this.#refused(reply)
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
      const reply = await link.send('lru_crawler metadump hash\r\n', 'list')
      if (!('lines' in reply)) throw this.#refused(reply)
      return reply.lines.map((line) => decodeURIComponent(/^key=(\S*)/.exec(line)?.[1] ?? ''))
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

  #send(command: string, kind: ReplyKind): Promise<Reply> {
    if (this.#isClosed) return Promise.reject(this.#closedError())
    this.#link ??= this.#connect()
    return this.#link.send(command, kind)
  }

  #connect(): MemcachedLink {
    const link = new MemcachedLink(this.#options, () => {
      if (this.#link !== link) return
      this.#link = undefined
      this.#options.onLoss?.()
    })
    const { login } = this.#options
    if (login) void this.#logIn(link, login)
    return link
  }

  /**
   * The first command of a connection, before what the callers send. The server takes any `set` for
   * it; where no login is asked for, it must not leave a secret in the cache.
   */
  async #logIn(link: MemcachedLink, { user, password }: MemcachedLogin): Promise<void> {
    const secret = `${user} ${password}`
    const reply = await link
      .send(`set holdfast:login 0 -1 ${Buffer.byteLength(secret)}\r\n${secret}\r\n`, 'meta')
      .catch(() => null)
    if (reply && 'failure' in reply) link.end(this.#refused(reply))
  }

  #closedError(): MemcachedError {
    return new MemcachedError('CLOSED', `The client of ${this.name} is closed`)
  }

  #refused(reply: Reply): MemcachedError {
    const words = 'failure' in reply ? reply.failure : 'an answer that does not fit the command'
    return new MemcachedError('REFUSED', `${this.name}: ${words}`)
  }
}

function splitStat(line: string): [string, string] {
  const [, name = '', value = ''] = /^STAT (\S+) ?(.*)$/s.exec(line) ?? []
  return [name, value]
}
