import type { Env } from '../../base/env.js'
import { parseServers } from '../../drivers/zookeeper/hosts.js'
import { type Acl, OPEN, ZooKeeperClient, type ZooKeeperOptions } from '../../drivers/zookeeper/index.js'
import { sessionSettings } from '../../drivers/zookeeper/options.js'
import { hasCode } from './failures.js'

/** A client that uses the shared session. */
export interface SessionClient {
  /** The session has ended, and all its nodes with it. */
  onSessionEnd(): void
  /** The servers answer again. */
  onSessionBack(): void
}

/**
 * The session is given up after so many timeouts without an answer: a server that lost its data
 * never ends it.
 */
const GIVE_UP_AFTER_TIMEOUTS = 2

/**
 * The ZooKeeper session that all clients of this process share. When it has ended, the next call
 * opens a new one.
 */
export class SharedSession {
  readonly acl: readonly Acl[]
  readonly #servers: string
  readonly #options: ZooKeeperOptions
  readonly #env: Env
  readonly #users = new Set<SessionClient>()
  #client: ZooKeeperClient | null = null
  #attempts = 0
  #silentSince: number | null = null

  constructor(servers: string, options: ZooKeeperOptions & { env: Env; acl?: readonly Acl[] | undefined }) {
    const { acl, ...rest } = options
    this.#servers = servers
    this.#options = rest
    this.#env = options.env
    this.acl = acl ?? OPEN
  }

  /** Until when the leader surely keeps the session, on our monotonic clock. */
  get validUntil(): number {
    return this.#client ? this.#client.touchedAt + this.timeoutMs : -Infinity
  }

  get timeoutMs(): number {
    return this.#client?.session?.timeoutMs ?? 0
  }

  /** What the options ask for; the servers may set another timeout. */
  get asked(): { timeoutMs: number; tickMs: number; hostCount: number } {
    const { hosts } = parseServers(this.#servers)
    const { timeoutMs, tickMs } = sessionSettings(hosts, this.#options)
    return { timeoutMs, tickMs, hostCount: hosts.length }
  }

  /** A number that no other attempt to join a line has, in this session or in later ones. */
  newAttempt(): number {
    return ++this.#attempts
  }

  get id(): bigint | null {
    return this.#client?.session?.id ?? null
  }

  /** Why no server answers, if known. */
  get trouble(): string | null {
    return this.#client?.lastFailure?.message ?? null
  }

  join(user: SessionClient): void {
    this.#users.add(user)
  }

  /** At most one client uses it. */
  get hasOneClient(): boolean {
    return this.#users.size === 1
  }

  /** The session ends with its last client. */
  async leave(user: SessionClient): Promise<void> {
    this.#users.delete(user)
    if (this.#users.size > 0) return
    const client = this.#client
    this.#client = null
    this.#silentSince = null
    await client?.close()
  }

  /** Runs `work` with a session of its own, which also sees nodes outside the chroot. */
  async withOwnSession<T>(work: (zk: ZooKeeperClient) => Promise<T>): Promise<T> {
    const [servers = ''] = this.#servers.split('/')
    const client = new ZooKeeperClient(servers, this.#options)
    try {
      return await work(client)
    } finally {
      await client.close()
    }
  }

  /** The driver of the present session. */
  get zk(): ZooKeeperClient {
    const giveUpAfterMs = GIVE_UP_AFTER_TIMEOUTS * this.timeoutMs
    const silentMs = this.#silentSince === null ? 0 : this.#env.now() - this.#silentSince
    if (this.#client && silentMs > giveUpAfterMs) this.#end(this.#client)
    // A call goes on after the last client has left: nobody would end the session that it opens.
    if (this.#users.size === 0) return this.#closed()
    this.#client ??= this.#open()
    return this.#client
  }

  /**
   * A write that changes nothing. Its answer proves that a majority still has the session, which
   * the answer to a read or a `sync` does not.
   */
  async confirm(): Promise<void> {
    try {
      await this.zk.multi([{ type: 'check', path: '/' }])
    } catch (error) {
      // Also an answer: we may not read the root.
      if (!hasCode(error, 'NO_AUTH')) throw error
    }
  }

  /**
   * Makes the nodes down to `path` as containers, which the servers remove some time after they
   * become empty.
   */
  async makePath(path: string): Promise<void> {
    try {
      await this.zk.create(path, { mode: 'container', acl: this.acl })
    } catch (error) {
      if (hasCode(error, 'NODE_EXISTS')) return
      const above = path.slice(0, path.lastIndexOf('/'))
      if (!hasCode(error, 'NO_NODE') || above === '') throw error
      await this.makePath(above)
      await this.makePath(path)
    }
  }

  /** Refuses every request, and never connects. */
  #closed(): ZooKeeperClient {
    const client = new ZooKeeperClient(this.#servers, this.#options)
    void client.close()
    return client
  }

  #open(): ZooKeeperClient {
    const client = new ZooKeeperClient(this.#servers, this.#options)
    client.subscribe((event) => {
      if (client !== this.#client) return
      if (event.type === 'suspected') this.#silentSince = event.since
      else this.#silentSince = null
      if (event.type === 'reconnected') for (const user of this.#users) user.onSessionBack()
      if (event.type === 'expired' || event.type === 'closed') this.#end(client)
    })
    return client
  }

  #end(client: ZooKeeperClient | null): void {
    this.#client = null
    this.#silentSince = null
    void client?.close()
    for (const user of [...this.#users]) user.onSessionEnd()
  }
}
