import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe } from 'vitest'
import { type ServerName, serverAvailability } from './availability.js'
import { type MariadbServer, startMariadb } from './mariadb.js'
import { dropPackets } from './packet-loss.js'
import { type PostgresServer, startPostgres } from './postgres.js'
import { TcpProxy } from './proxy.js'
import { type RedisOptions, type RedisServer, startRedis } from './redis.js'
import type { WallClock } from './wall-clock.js'

export type MemberKind = 'redis' | 'postgres' | 'mariadb' | 'sqlite'

type MemberServer = RedisServer | PostgresServer | MariadbServer

export interface QuorumServersOptions {
  /** Of the Redis members. */
  persistence?: NonNullable<RedisOptions['persistence']>
  /** The clock of each member; undefined: the machine's. */
  clocks?: readonly (WallClock | undefined)[]
}

/** How one client reaches the members: through proxies of its own. */
export interface Ways {
  readonly urls: readonly string[]
  readonly url: string
  /** By the number of the member; null: a file has none. */
  readonly proxies: readonly (TcpProxy | null)[]
  stop(): Promise<void>
}

/**
 * The private servers of a quorum. Members are named by their number, from 0. A SQLite file is a
 * member without a server: it cannot be killed or paused.
 */
export class QuorumServers {
  readonly kinds: readonly MemberKind[]
  readonly urls: readonly string[]
  readonly #servers: readonly (MemberServer | null)[]
  readonly #folder: string

  private constructor(
    kinds: readonly MemberKind[],
    servers: readonly (MemberServer | null)[],
    folder: string,
  ) {
    this.kinds = kinds
    this.#servers = servers
    this.#folder = folder
    this.urls = servers.map((server, index) => server?.url ?? `sqlite:${join(folder, `member-${index}.db`)}`)
  }

  static async start(
    kinds: readonly MemberKind[],
    options: QuorumServersOptions = {},
  ): Promise<QuorumServers> {
    const starting = await Promise.allSettled(kinds.map((kind, index) => startMember(kind, index, options)))
    const failed = starting.find((each) => each.status === 'rejected')
    const servers = starting.map((each) => (each.status === 'fulfilled' ? each.value : null))
    if (failed) {
      for (const server of servers) await server?.stop()
      throw failed.reason
    }
    return new QuorumServers(kinds, servers, mkdtempSync(join(tmpdir(), 'holdfast-quorum-')))
  }

  get size(): number {
    return this.kinds.length
  }

  /** How many members may fail. */
  get minority(): number {
    return (this.size - 1) / 2
  }

  get url(): string {
    return quorumUrl(this.urls)
  }

  isRunning(member: number): boolean {
    return this.#servers[member]?.isRunning ?? true
  }

  server(member: number): MemberServer {
    const server = this.#servers[member]
    if (!server) throw new Error(`member ${member} (${this.kinds[member]}) has no server`)
    return server
  }

  /** kill -9. */
  kill(member: number): Promise<void> {
    return this.server(member).kill()
  }

  pause(member: number): void {
    this.server(member).pause()
  }

  resume(member: number): void {
    this.server(member).resume()
  }

  /** Starts it again on the same port, after a kill -9 if it runs. */
  restart(member: number, options: { keepData: boolean }): Promise<void> {
    return this.server(member).restart(options)
  }

  /** Drops all its packets, of all its clients, by iptables. */
  cutOff(member: number): Promise<{ heal(): void }> {
    return dropPackets(this.server(member).port, 1)
  }

  /** Proxies in front of the members, for one client: to cut it off, and no other. */
  async ways(): Promise<Ways> {
    const proxies = await Promise.all(
      this.#servers.map((server) => (server ? TcpProxy.start(server.port) : null)),
    )
    const urls = this.urls.map((url, index) => {
      const proxy = proxies[index]
      return proxy ? url.replace(this.server(index).address, `127.0.0.1:${proxy.port}`) : url
    })
    const stop = async (): Promise<void> => {
      for (const proxy of proxies) await proxy?.stop()
    }
    return { urls, url: quorumUrl(urls), proxies, stop }
  }

  async stop(): Promise<void> {
    for (const server of this.#servers) await server?.stop()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** Starts all of them at once: three Redis in some 0.1 s, three databases in 1 s. */
export function startQuorum(
  kinds: readonly MemberKind[],
  options?: QuorumServersOptions,
): Promise<QuorumServers> {
  return QuorumServers.start(kinds, options)
}

/** `describe`; where the server of a member is missing, its tests are skipped, with the reason. */
export function describeOnQuorum(kinds: readonly MemberKind[], title: string, body: () => void): void {
  const reason = quorumAvailability(kinds)
  describe.skipIf(reason !== null)(reason === null ? title : `${title} (skipped: ${reason})`, body)
}

/** null: all members can be started here. Otherwise why not. */
export function quorumAvailability(kinds: readonly MemberKind[]): string | null {
  const names = kinds.filter((kind): kind is MemberKind & ServerName => kind !== 'sqlite')
  return names.map((name) => serverAvailability(name)).find((reason) => reason !== null) ?? null
}

function quorumUrl(urls: readonly string[]): string {
  return `quorum:${urls.join(',')}`
}

async function startMember(
  kind: MemberKind,
  index: number,
  { persistence = 'none', clocks }: QuorumServersOptions,
): Promise<MemberServer | null> {
  const clock = clocks?.[index]
  const own = clock ? { clock } : {}
  switch (kind) {
    case 'redis':
      return startRedis({ persistence, ...own })
    case 'postgres':
      return startPostgres(own)
    case 'mariadb':
      return startMariadb(own)
    case 'sqlite':
      return null
  }
}
