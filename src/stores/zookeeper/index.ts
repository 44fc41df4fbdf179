import type { ConnectionOptions } from 'node:tls'
import type { Duration } from '../../base/duration.js'
import { type Env, systemEnv } from '../../base/env.js'
import { invalid } from '../../base/errors.js'
import { checkOptions, type OptionNames } from '../../base/options.js'
import type { Capabilities, ClientContext, Connection, Store } from '../../contract/store.js'
import { type Acl, CREATOR_ALL, type Credentials } from '../../drivers/zookeeper/index.js'
import { readServerUrl } from '../shared/server-url.js'
import { ZooKeeperConnection } from './connection.js'
import { curatorFormat, type NodeFormat, OWN_FORMAT } from './format.js'
import { FENCES_EACH } from './names.js'
import { SharedSession } from './session.js'
import { DEFAULT_ROOT, ZooKeeperSpace } from './space.js'

/** The options of `zookeeper`. */
export interface ZooKeeperStoreOptions {
  /**
   * How long the session, and with it every hold, outlives its process; the servers may set another
   * one. Default: 10 s.
   */
  sessionTimeout?: Duration | undefined
  /** The servers' `tickTime`. Default: 2 s, as theirs. */
  tick?: Duration | undefined
  /** The node below which everything is. Default: `/holdfast`. */
  root?: string | undefined
  /**
   * Share lines with services that use Curator's `InterProcessMutex` (`curator`) or
   * `InterProcessReadWriteLock` (`curator-read-write`), or Kazoo with
   * `extra_lock_patterns=["-lock-"]`: a resource is then a path below `root`, and only locks are
   * supported. Default: own lines.
   */
  shared?: 'curator' | 'curator-read-write' | undefined
  /** Sent on every connection before anything else. */
  auth?: readonly Credentials[] | undefined
  /** Of every node that is made. Default: anyone may do everything. */
  acl?: readonly Acl[] | undefined
  /** `true`, or options of `node:tls`. Default: no TLS. */
  tls?: boolean | ConnectionOptions | undefined
  /** Time and timers other than the machine's, for simulations. */
  env?: Env | undefined
}

const ZOOKEEPER_OPTIONS: OptionNames<ZooKeeperStoreOptions> = {
  sessionTimeout: true,
  tick: true,
  root: true,
  shared: true,
  auth: true,
  acl: true,
  tls: true,
  env: true,
}
const URL_OPTIONS = ['root', 'sessionTimeout', 'tick', 'shared', 'tls']

/**
 * The sessions of this process, by servers and options: clients with the same ones share a session.
 */
const sessions = new Map<string, SharedSession>()

/**
 * A store in a ZooKeeper ensemble (3.5 or later): `host1:2181,host2:2181/chroot`. No package is
 * needed, Holdfast brings its own client.
 *
 * @example
 * ```ts
 * import { Holdfast } from 'holdfast'
 * import { zookeeper } from 'holdfast/zookeeper'
 *
 * const locks = new Holdfast(zookeeper('zk1:2181,zk2:2181,zk3:2181'))
 * await locks.mutex('nightly-report').run(async () => console.log('one process at a time'))
 * await locks.close()
 * ```
 */
export function zookeeper(servers: string, options: ZooKeeperStoreOptions = {}): Store {
  return new ZooKeeperStore(servers, checkOptions(options, ZOOKEEPER_OPTIONS, "{ root: '/locks' }"))
}

/**
 * @internal What follows `zookeeper:` in a URL:
 * `//user:password@host1:2181,host2:2181/chroot?root=/locks&tls=true`. With a user, only that user
 * has access to the nodes.
 */
export function zookeeperFromUrl(rest: string): Store {
  const { servers, login, options } = readServerUrl(rest, 'ZooKeeper', URL_OPTIONS)
  if (!login) return zookeeper(servers, options)
  const credentials = `${login.user}:${login.password}`
  return zookeeper(servers, { ...options, auth: [{ scheme: 'digest', credentials }], acl: CREATOR_ALL })
}

class ZooKeeperStore implements Store {
  readonly name = 'zookeeper'
  readonly capabilities: Capabilities
  readonly #session: SharedSession
  readonly #env: Env
  readonly #root: string
  readonly #format: NodeFormat

  constructor(servers: string, { root = DEFAULT_ROOT, shared, ...options }: ZooKeeperStoreOptions) {
    this.#env = options.env ?? systemEnv
    this.#root = root
    this.#format = formatOf(shared)
    const maxBlock = this.#format.isOwn ? FENCES_EACH : 1
    this.capabilities = {
      perHoldLease: false,
      sharesClaims: false,
      maxBeats: 1000,
      askNextEveryMs: null,
      maxBlock,
    }
    this.#session = sessionFor(servers, { ...options, env: this.#env })
  }

  connect(client: ClientContext): Connection {
    const { space: name } = client
    const push = client.push.bind(client)
    const [session, env, format, root] = [this.#session, this.#env, this.#format, this.#root]
    return new ZooKeeperConnection(new ZooKeeperSpace({ session, env, push, format, root, name }))
  }
}

function formatOf(shared: ZooKeeperStoreOptions['shared']): NodeFormat {
  if (shared === undefined) return OWN_FORMAT
  if (shared === 'curator') return curatorFormat('lock-')
  if (shared === 'curator-read-write') return curatorFormat('__WRIT__')
  throw invalid(`shared is '${shared}', but must be 'curator' or 'curator-read-write'`)
}

function sessionFor(servers: string, options: ZooKeeperStoreOptions & { env: Env }): SharedSession {
  const { env, tls, ...plain } = options
  // These options cannot be compared.
  if (env !== systemEnv || typeof tls === 'object') return new SharedSession(servers, options)
  const key = JSON.stringify([servers, plain, tls === true])
  const session = sessions.get(key) ?? new SharedSession(servers, options)
  sessions.set(key, session)
  return session
}
