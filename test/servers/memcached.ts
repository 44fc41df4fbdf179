import { systemEnv } from '../../src/base/env.js'
import { MemcachedServer as Client } from '../../src/drivers/memcached/index.js'
import { needServer } from './availability.js'
import { freePort } from './ports.js'
import { Server, started } from './server.js'
import type { WallClock } from './wall-clock.js'

export interface MemcachedProcessOptions {
  /** Further options of memcached: `['-M']`. */
  args?: readonly string[]
  /** Another version: the command. */
  program?: readonly string[]
  /** A clock of its own in place of the machine's. */
  clock?: WallClock
  /** Which of its commands tells that it serves. Default: `mn`; servers with a login refuse it. */
  login?: { user: string; password: string }
}

/** One memcached. A restart forgets everything. */
export class MemcachedProcess extends Server {
  readonly client: Client

  constructor(port: number, options: MemcachedProcessOptions = {}) {
    const client = new Client({
      host: '127.0.0.1',
      port,
      env: systemEnv,
      timeoutMs: 5000,
      login: options.login,
    })
    const listen = ['-l', '127.0.0.1', '-p', String(port), '-U', '0', '-m', '64', '-c', '4096']
    const asRoot = process.getuid?.() === 0 ? ['-u', 'root'] : []
    super(
      {
        name: 'memcached',
        command: () => [...(options.program ?? ['memcached']), ...listen, ...asRoot, ...(options.args ?? [])],
        env: options.clock?.env ?? {},
        isReady: async () => (await client.meta('mn\r\n')).status === 'MN',
      },
      port,
    )
    this.client = client
  }

  get url(): string {
    return `memcached://${this.address}`
  }

  /** A counter or setting of `stats`. */
  async stat(name: string): Promise<number> {
    return Number((await this.client.stats()).get(name))
  }

  /** The keys of all its items. */
  keys(): Promise<string[]> {
    return this.client.keys()
  }

  /** Drops an item, as an eviction does. */
  async evict(key: string): Promise<void> {
    await this.client.meta(`md ${key}\r\n`)
  }

  override async stop(): Promise<void> {
    this.client.close()
    await super.stop()
  }
}

/** Starts a private memcached; ready in some 20 ms. */
export async function startMemcached(options: MemcachedProcessOptions = {}): Promise<MemcachedProcess> {
  needServer('memcached')
  return started(new MemcachedProcess(await freePort(), options))
}
