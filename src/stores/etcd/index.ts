import type { ConnectionOptions } from 'node:tls'
import { type Duration, toMs } from '../../base/duration.js'
import { type Env, systemEnv } from '../../base/env.js'
import { invalid } from '../../base/errors.js'
import { checkOptions, type OptionNames } from '../../base/options.js'
import type { Capabilities, ClientContext, Connection, Store } from '../../contract/store.js'
import { EtcdClient, type EtcdOptions } from '../../drivers/etcd/index.js'
import { linkSettings } from '../../drivers/etcd/options.js'
import { readServerUrl } from '../shared/server-url.js'
import { EtcdConnection } from './connection.js'
import { DEFAULT_ROOT, type EtcdNames, ownNames, sharedNames } from './names.js'
import { FENCES_EACH } from './rows.js'

/** The options of `etcd`. */
export interface EtcdStoreOptions {
  /**
   * How long the lease, and with it every hold, outlives its process: whole seconds, and the
   * servers may set a longer one. Default: 10 s.
   */
  ttl?: Duration | undefined
  /** What all keys begin with. Default: `holdfast/`, or nothing where lines are shared. */
  root?: string | undefined
  /**
   * `'etcdctl'`: a resource is the very name that `etcdctl lock` and Go's `concurrency.NewMutex`
   * are given, below `root`, whatever the space. Default: the name that they have to use is
   * `holdfast/SPACE/lines/NAME`.
   */
  shared?: 'etcdctl' | undefined
  /** The user, where authentication is enabled. */
  username?: string | undefined
  /** Of the user. */
  password?: string | undefined
  /** `true`, or options of `node:tls`. Default: no TLS. */
  tls?: boolean | ConnectionOptions | undefined
  /** How long a request waits for its answer. Default: 3 s. */
  requestTimeout?: Duration | undefined
  /**
   * A server that owes an answer and sends nothing for so long is left for another one. Default: a
   * fifth of `ttl`.
   */
  stallTimeout?: Duration | undefined
  /** Time and timers other than the machine's, for simulations. */
  env?: Env | undefined
}

const ETCD_STORE_OPTIONS: OptionNames<EtcdStoreOptions> = {
  ttl: true,
  root: true,
  shared: true,
  username: true,
  password: true,
  tls: true,
  requestTimeout: true,
  stallTimeout: true,
  env: true,
}
const URL_OPTIONS = ['ttl', 'root', 'shared', 'tls', 'requestTimeout', 'stallTimeout']
const DEFAULT_TTL_MS = 10_000
const STALLS_IN_TTL = 5

/**
 * A store in an etcd cluster (3.4 or later): `etcd1:2379,etcd2:2379,etcd3:2379`. No package is
 * needed, Holdfast brings its own client. `etcdctl lock` and Go's `concurrency.Mutex` can wait in
 * the same lines.
 *
 * @example
 * ```ts
 * import { Holdfast } from 'holdfast'
 * import { etcd } from 'holdfast/etcd'
 *
 * const locks = new Holdfast(etcd('etcd1:2379,etcd2:2379,etcd3:2379', { ttl: '10s' }))
 * await locks.mutex('nightly-report').run(async () => console.log('one process at a time'))
 * await locks.close()
 * ```
 */
export function etcd(servers: string, options: EtcdStoreOptions = {}): Store {
  return new EtcdStore(servers, checkOptions(options, ETCD_STORE_OPTIONS, "{ ttl: '10s' }"))
}

/**
 * @internal What follows `etcd:` in a URL:
 * `//user:password@host1:2379,host2:2379?ttl=10s&tls=true`.
 */
export function etcdFromUrl(rest: string): Store {
  const { servers, login, options } = readServerUrl(rest, 'etcd', URL_OPTIONS)
  return etcd(servers, { ...options, ...(login && { username: login.user, password: login.password }) })
}

class EtcdStore implements Store {
  readonly name = 'etcd'
  readonly capabilities: Capabilities = {
    perHoldLease: false,
    sharesClaims: false,
    maxBeats: 1000,
    askNextEveryMs: null,
    maxBlock: FENCES_EACH,
  }
  readonly #servers: string
  readonly #options: EtcdOptions
  readonly #env: Env
  readonly #ttlMs: number
  readonly #names: (space: string) => EtcdNames

  constructor(servers: string, { ttl, root, shared, ...options }: EtcdStoreOptions) {
    this.#servers = servers
    this.#env = options.env ?? systemEnv
    this.#ttlMs = toMs(ttl ?? DEFAULT_TTL_MS, { name: 'ttl', minMs: 1 })
    this.#options = { ...options, stallTimeout: options.stallTimeout ?? this.#ttlMs / STALLS_IN_TTL }
    if (shared !== undefined && shared !== 'etcdctl')
      throw invalid(`shared is '${shared}', but must be 'etcdctl'`)
    this.#names = (space) => (shared ? sharedNames(root ?? '', space) : ownNames(root ?? DEFAULT_ROOT, space))
    // Wrong options are told here, and not at the first call.
    linkSettings(servers, this.#options)
  }

  connect(client: ClientContext): Connection {
    return new EtcdConnection({
      client: new EtcdClient(this.#servers, this.#options),
      env: this.#env,
      names: this.#names(client.space),
      ttlMs: this.#ttlMs,
      push: client.push.bind(client),
    })
  }
}
