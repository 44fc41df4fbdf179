import type { ConnectionOptions } from 'node:tls'
import { type Duration, toMs } from '../../base/duration.js'
import { type Env, systemEnv } from '../../base/env.js'
import { invalid } from '../../base/errors.js'
import { checkOptions, type OptionNames } from '../../base/options.js'
import type { Capabilities, ClientContext, Connection, Store } from '../../contract/store.js'
import { type MemcachedLogin, MemcachedServer, parseMemcachedServers } from '../../drivers/memcached/index.js'
import { readServerUrl } from '../shared/server-url.js'
import { MemcachedBackend } from './backend.js'
import { MemcachedConnection } from './connection.js'

/** The options of `memcached`. */
export interface MemcachedOptions {
  /** How the keys of all items begin. Default: `holdfast`. */
  prefix?: string | undefined
  /** For servers that are started with `-Y FILE`. Default: no login. */
  login?: { user: string; password: string } | undefined
  /** `true`, or options of `node:tls`. Default: no TLS. */
  tls?: boolean | ConnectionOptions | undefined
  /** How long a connection or an answer may take. Default: 1.5 s. */
  timeout?: Duration | undefined
  /**
   * How long an unused resource's last fence is kept. Without it, fences go on from the clock.
   * Default: a minute.
   */
  retention?: Duration | undefined
  /** A clock other than the servers', for tests. */
  env?: Env | undefined
}

const MEMCACHED_OPTIONS: OptionNames<MemcachedOptions> = {
  prefix: true,
  login: true,
  tls: true,
  timeout: true,
  retention: true,
  env: true,
}
const URL_OPTIONS = ['prefix', 'retention', 'timeout', 'tls']

/**
 * A store on memcached 1.6.10 or later: `host1:11211,host2:11211`. Each lock lives on one of the
 * servers, and is lost when that one restarts or evicts it. So this store saves work; where two
 * holders would do harm, use another one. No package is needed, Holdfast brings its own client.
 *
 * @example
 * ```ts
 * import { Holdfast } from 'holdfast'
 * import { memcached } from 'holdfast/memcached'
 *
 * const locks = new Holdfast(memcached('cache1:11211,cache2:11211'))
 * await locks.mutex('thumbnail:7').run(async () => console.log('made once, not by every server'))
 * await locks.close()
 * ```
 */
export function memcached(servers: string, options: MemcachedOptions = {}): Store {
  checkOptions(options, MEMCACHED_OPTIONS, "{ prefix: 'locks' }")
  if (typeof servers !== 'string') throw invalid(`The servers must be a string, not ${typeof servers}`)
  return new MemcachedStore(servers, options)
}

/** @internal What follows `memcached:` in a URL. */
export function memcachedFromUrl(rest: string): Store {
  const { servers, login, options } = readServerUrl(rest, 'memcached', URL_OPTIONS)
  return memcached(servers, { ...options, login })
}

class MemcachedStore implements Store {
  readonly name = 'memcached'
  readonly capabilities: Capabilities
  readonly #backend: MemcachedBackend

  constructor(servers: string, options: MemcachedOptions) {
    const timeoutMs = toMs(options.timeout ?? '1.5s', { name: 'timeout', minMs: 1 })
    const tls = options.tls === true ? {} : options.tls || undefined
    const login = options.login && checkLogin(options.login)
    const addresses = parseMemcachedServers(servers)
    this.#backend = new MemcachedBackend({
      servers: addresses.map(
        (address) => (onLoss) =>
          new MemcachedServer({ ...address, env: systemEnv, timeoutMs, login, tls, onLoss }),
      ),
      prefix: checkPrefix(options.prefix ?? 'holdfast'),
      retentionMs: toMs(options.retention ?? '1m', { name: 'retention', minMs: 1000 }),
      env: options.env ?? systemEnv,
      clock: options.env ?? null,
    })
    this.capabilities = {
      perHoldLease: true,
      // A lease on a server that answers must not wait for one that does not.
      maxBeats: addresses.length > 1 ? 1 : 200,
      // The poller does that, without writing anything.
      askNextEveryMs: null,
    }
  }

  connect(client: ClientContext): Connection {
    return new MemcachedConnection(this.#backend, client)
  }
}

function checkLogin({ user, password }: MemcachedLogin): MemcachedLogin {
  for (const text of [user, password])
    if (typeof text !== 'string' || /[\s\0]/.test(text) || text === '')
      throw invalid('login must have a user and a password, without spaces')
  return { user, password }
}

function checkPrefix(prefix: unknown): string {
  if (typeof prefix === 'string' && /^[\w.-]{1,100}$/.test(prefix)) return prefix
  throw invalid(`prefix is '${String(prefix)}', but must be letters, digits, '_', '-' or '.'; at most 100`)
}
