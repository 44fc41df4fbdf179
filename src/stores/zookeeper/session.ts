import type { Env } from '../../base/env.js'
import { parseServers } from '../../drivers/zookeeper/hosts.js'
import {
  type Acl,
  type Answer,
  OPEN,
  ZooKeeperClient,
  ZooKeeperError,
  type ZooKeeperOptions,
} from '../../drivers/zookeeper/index.js'
import { sessionSettings } from '../../drivers/zookeeper/options.js'
import { hasCode } from './failures.js'

/** What a user of the session wants to know. */
export interface SessionUser {
  /** The session is over, and every node of it. */
  onSessionEnd(): void
  /** Answers come again. */
  onSessionBack(): void
}

/** After so many time-outs without an answer the session is given up: a server that lost its data would never tell us. */
const GIVE_UP_AFTER = 2

/** The ZooKeeper session that all clients of this process share, and the ones that follow it when it has ended. */
export class SharedSession {
  readonly acl: readonly Acl[]
  readonly #servers: string
  readonly #options: ZooKeeperOptions
  readonly #env: Env
  readonly #users = new Set<SessionUser>()
  #client: ZooKeeperClient | null = null
  #attempts = 0
  #validUntil = -Infinity
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
    return this.#validUntil
  }

  get timeoutMs(): number {
    return this.#client?.session?.timeoutMs ?? 0
  }

  /** What was asked for: the servers' tick and the session's time-out, of which they have the last word, and how many of them are named. */
  get asked(): { timeoutMs: number; tickMs: number; hostCount: number } {
    const { hosts } = parseServers(this.#servers)
    const { timeoutMs, tickMs } = sessionSettings(hosts, this.#options)
    return { timeoutMs, tickMs, hostCount: hosts.length }
  }

  /** A number that no other attempt to join a line has, in this session and in those that follow it. */
  newAttempt(): number {
    return ++this.#attempts
  }

  get id(): bigint | null {
    return this.#client?.session?.id ?? null
  }

  /** Why no server answers, if that is known. */
  get trouble(): string | null {
    return this.#client?.lastFailure?.message ?? null
  }

  join(user: SessionUser): void {
    this.#users.add(user)
  }

  /** Nobody else uses it. */
  get isOnly(): boolean {
    return this.#users.size === 1
  }

  /** The last one to leave ends the session. */
  async leave(user: SessionUser): Promise<void> {
    this.#users.delete(user)
    if (this.#users.size > 0) return
    const client = this.#client
    this.#client = null
    await client?.close()
  }

  /** Does something with a session of its own, which sees also what is outside the chroot. */
  async aside<T>(work: (zk: ZooKeeperClient) => Promise<T>): Promise<T> {
    const [servers = ''] = this.#servers.split('/')
    const client = new ZooKeeperClient(servers, this.#options)
    try {
      return await work(client)
    } finally {
      await client.close()
    }
  }

  /** The client of the present session. */
  get zk(): ZooKeeperClient {
    const isHopeless =
      this.#silentSince !== null && this.#env.now() - this.#silentSince > GIVE_UP_AFTER * this.timeoutMs
    if (isHopeless) this.#end(this.#client)
    this.#client ??= this.#open()
    return this.#client
  }

  /** A write that changes nothing: its answer proves that a majority still has the session, which no read and no `sync` does. */
  async confirm(): Promise<void> {
    try {
      await this.write((zk) => zk.multi([{ type: 'check', path: '/' }]))
    } catch (error) {
      // An answer like any other, where we may not read the root.
      if (!hasCode(error, 'NO_AUTH')) throw error
    }
  }

  /** A write; its answer, be it an error, tells how long the session lives. */
  write<T extends Answer>(ask: (zk: ZooKeeperClient) => Promise<T>): Promise<T> {
    const { zk } = this
    return ask(zk).then(
      (answer) => {
        this.#note(zk, answer)
        return answer
      },
      (error) => {
        if (error instanceof ZooKeeperError) this.#note(zk, error)
        throw error
      },
    )
  }

  /** Makes the nodes down to `path`, each of which vanishes again when it has been used and is empty. */
  async makePath(path: string): Promise<void> {
    try {
      await this.write((zk) => zk.create(path, { mode: 'container', acl: this.acl }))
    } catch (error) {
      if (hasCode(error, 'NODE_EXISTS')) return
      const above = path.slice(0, path.lastIndexOf('/'))
      if (!hasCode(error, 'NO_NODE') || above === '') throw error
      await this.makePath(above)
      await this.makePath(path)
    }
  }

  #note(zk: ZooKeeperClient, { touchedAt }: { touchedAt?: number | undefined }): void {
    if (zk !== this.#client || touchedAt === undefined) return
    this.#validUntil = Math.max(this.#validUntil, touchedAt + this.timeoutMs)
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
    this.#validUntil = -Infinity
    void client?.close()
    for (const user of [...this.#users]) user.onSessionEnd()
  }
}
