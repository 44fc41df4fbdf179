import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { eventually } from '../../src/testing/conformance/checks.js'
import { needServer } from './availability.js'
import { freePort } from './ports.js'
import { preloaded } from './preload.js'
import { Server, started } from './server.js'
import type { SlowDisk } from './slow-disk.js'
import type { WallClock } from './wall-clock.js'

const run = promisify(execFile)
const CLI_LIMIT_MS = 30_000

export interface RedisOptions {
  /**
   * `none`: a restart forgets everything. The others write an append-only file, flushed each second
   * or at each write.
   */
  persistence?: 'none' | 'everysec' | 'always'
  /** Further options of redis-server: `['--maxmemory', '10mb']`. */
  args?: readonly string[]
  /** A clock of its own in place of the machine's. */
  clock?: WallClock
  /** A disk of its own. */
  disk?: SlowDisk
  /** Where its folder is made. */
  parent?: string
  /** Another server with the same options, such as Valkey: its program, or the whole command. */
  program?: string | readonly string[]
}

/** One redis-server. */
export class RedisServer extends Server {
  constructor(port: number, options: RedisOptions = {}) {
    super(
      {
        name: 'redis',
        parent: options.parent,
        command: (server) => [...commandOf(server, options), ...(options.args ?? [])],
        env: preloaded(options.clock, options.disk),
        isReady: async (server) => (await redisCli(server.port, ['ping'])) === 'PONG',
      },
      port,
    )
  }

  get url(): string {
    return `redis://${this.address}`
  }

  /** One command; resolves with what redis-cli prints, rejects with the server's error. */
  cli(...args: string[]): Promise<string> {
    return redisCli(this.port, args)
  }

  /** One field of INFO: `await redis.info('role')`. */
  async info(field: string): Promise<string> {
    return fieldOf(await this.cli('info', 'all'), field)
  }

  /**
   * Resolves when WAIT counts the replica: it says that its link is up before the primary has
   * heard from it.
   */
  async hasReplica(): Promise<void> {
    await eventually('the replica', async () =>
      (await this.cli('info', 'replication')).includes('state=online'),
    )
  }

  /** Closes the connection of every client, ordinary and subscribed ones, of replicas not. */
  async dropClients(): Promise<void> {
    for (const type of ['normal', 'pubsub']) await this.cli('client', 'kill', 'type', type)
  }
}

/** Starts a private Redis; ready in some 40 ms. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  needServer('redis')
  return started(new RedisServer(await freePort(), options))
}

/**
 * A Redis for tests that neither stop nor configure it: the one that HOLDFAST_TEST_REDIS_URL names,
 * or a private one. Keys of others may be in it; use a space of your own.
 */
export async function borrowRedis(): Promise<{ url: string; stop(): Promise<void> }> {
  const url = process.env['HOLDFAST_TEST_REDIS_URL']
  return url ? { url, stop: async () => {} } : startRedis()
}

export async function redisCli(port: number, args: readonly string[]): Promise<string> {
  const { stdout } = await run('redis-cli', ['-e', '-p', String(port), ...args], { timeout: CLI_LIMIT_MS })
  return stdout.trim()
}

/** The value of a `field:value` line. */
export function fieldOf(info: string, field: string): string {
  const line = info.split(/\r?\n/).find((each) => each.startsWith(`${field}:`))
  if (line === undefined) throw new Error(`no ${field} in: ${info}`)
  return line.slice(field.length + 1)
}

function commandOf(
  server: Server,
  { persistence = 'none', program = 'redis-server' }: RedisOptions,
): string[] {
  const listen = ['--port', String(server.port), '--bind', '127.0.0.1', '--dir', server.dataFolder]
  const keep = persistence === 'none' ? [] : ['--appendonly', 'yes', '--appendfsync', persistence]
  // A replica is served at once, not after the five seconds in which another one might turn up.
  const quick = ['--repl-diskless-sync-delay', '0']
  return [...[program].flat(), ...listen, '--save', '', ...quick, ...keep]
}
