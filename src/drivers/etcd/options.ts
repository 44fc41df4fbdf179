import type { ConnectionOptions } from 'node:tls'
import { type Duration, toMs } from '../../base/duration.js'
import { type Env, systemEnv } from '../../base/env.js'
import { invalid } from '../../base/errors.js'
import { checkOptions, type OptionNames } from '../../base/options.js'
import { HostRing } from '../hosts.js'
import { parseEtcdServers } from './hosts.js'
import { LARGEST_UINT31 } from './http2/frames.js'

/** The options of `new EtcdClient()`. */
export interface EtcdOptions {
  /** How long a request waits for its answer, also while there is no connection. Default: 3 s. */
  requestTimeout?: Duration | undefined
  /**
   * A server that owes an answer and sends nothing for so long is left for another one. Default: 2
   * s.
   */
  stallTimeout?: Duration | undefined
  /** The user, where authentication is enabled. */
  username?: string | undefined
  /** Of the user. */
  password?: string | undefined
  /** `true`, or options of `node:tls` (`ca`, `cert`, `key`, `servername`, …). Default: no TLS. */
  tls?: boolean | ConnectionOptions | undefined
  /** Time, timers and randomness other than the machine's, for simulations. */
  env?: Env | undefined
}

const ETCD_OPTIONS: OptionNames<EtcdOptions> = {
  requestTimeout: true,
  stallTimeout: true,
  username: true,
  password: true,
  tls: true,
  env: true,
}

const DEFAULT_REQUEST_TIMEOUT_MS = 3000
const DEFAULT_STALL_TIMEOUT_MS = 2000

export interface LinkSettings {
  readonly hosts: HostRing
  readonly tls: ConnectionOptions | null
  readonly user: { readonly name: string; readonly password: string } | null
  readonly requestTimeoutMs: number
  readonly stallTimeoutMs: number
  /** A connection whose streams have had all numbers up to this one is followed by another. */
  readonly lastStreamId: number
  readonly env: Env
}

export function linkSettings(servers: string, options: EtcdOptions): LinkSettings {
  const { env = systemEnv, username, password } = checkOptions(options, ETCD_OPTIONS, '{ tls: true }')
  if ((username === undefined) !== (password === undefined))
    throw invalid('username and password are given together, or none of them')
  const { requestTimeout = DEFAULT_REQUEST_TIMEOUT_MS, stallTimeout = DEFAULT_STALL_TIMEOUT_MS } = options
  return {
    hosts: new HostRing(parseEtcdServers(servers), () => env.random()),
    tls: options.tls === true ? {} : options.tls || null,
    user: username === undefined || password === undefined ? null : { name: username, password },
    requestTimeoutMs: toMs(requestTimeout, { name: 'requestTimeout', minMs: 1 }),
    stallTimeoutMs: toMs(stallTimeout, { name: 'stallTimeout', minMs: 1 }),
    lastStreamId: LARGEST_UINT31,
    env,
  }
}
