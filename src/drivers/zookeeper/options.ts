import type { ConnectionOptions } from 'node:tls'
import { type Duration, toMs } from '../../base/duration.js'
import { type Env, systemEnv } from '../../base/env.js'
import { invalid } from '../../base/errors.js'
import { checkOptions, type OptionNames } from '../../base/options.js'
import { type Host, HostRing } from '../hosts.js'
import type { Credentials } from './events.js'
import type { SessionSettings } from './session.js'

/** The options of `new ZooKeeperClient()`. */
export interface ZooKeeperOptions {
  /**
   * How long the session lives without a sign of life from us; the server may set another one.
   * Default: 10 s.
   */
  sessionTimeout?: Duration | undefined
  /**
   * How long a request waits for its answer, also while there is no connection. Default:
   * `sessionTimeout`.
   */
  requestTimeout?: Duration | undefined
  /** How long `close` tries to end the session on the server. Default: 2 s. */
  closeTimeout?: Duration | undefined
  /**
   * The servers' `tickTime`: they need up to half of it to tell their leader of a sign of life.
   * Default: 2 s, as theirs.
   */
  tick?: Duration | undefined
  /** Sent on every connection before anything else. */
  auth?: readonly Credentials[] | undefined
  /** `true`, or options of `node:tls` (`ca`, `cert`, `key`, `servername`, …). Default: no TLS. */
  tls?: boolean | ConnectionOptions | undefined
  /**
   * How many requests may wait for an answer or for a connection; more are refused. Default: 100
   * 000.
   */
  maxRequests?: number | undefined
  /** The largest request that is sent; the servers' `jute.maxbuffer`. Default: 1 048 575. */
  maxRequestBytes?: number | undefined
  /** Time, timers and randomness other than the machine's, for simulations. */
  env?: Env | undefined
  /** @internal The number of the first request, to see it wrap. */
  firstXid?: number | undefined
}

const ZOOKEEPER_OPTIONS: OptionNames<ZooKeeperOptions> = {
  sessionTimeout: true,
  requestTimeout: true,
  closeTimeout: true,
  tick: true,
  auth: true,
  tls: true,
  maxRequests: true,
  maxRequestBytes: true,
  env: true,
  firstXid: true,
}

const DEFAULT_SESSION_TIMEOUT_MS = 10_000
const DEFAULT_CLOSE_TIMEOUT_MS = 2000
const DEFAULT_TICK_MS = 2000
const DEFAULT_MAX_REQUESTS = 100_000
const DEFAULT_MAX_REQUEST_BYTES = 0xfffff

export function sessionSettings(hosts: readonly Host[], options: ZooKeeperOptions): SessionSettings {
  const { env = systemEnv } = checkOptions(options, ZOOKEEPER_OPTIONS, "{ sessionTimeout: '10s' }")
  return {
    hosts: new HostRing(hosts, () => env.random()),
    tls: options.tls === true ? {} : options.tls || null,
    auth: options.auth ?? [],
    timeoutMs: sessionTimeoutMs(options),
    closeTimeoutMs: toMs(options.closeTimeout ?? DEFAULT_CLOSE_TIMEOUT_MS, { name: 'closeTimeout' }),
    tickMs: toMs(options.tick ?? DEFAULT_TICK_MS, { name: 'tick' }),
    maxRequests: positive('maxRequests', options.maxRequests ?? DEFAULT_MAX_REQUESTS),
    maxRequestBytes: positive('maxRequestBytes', options.maxRequestBytes ?? DEFAULT_MAX_REQUEST_BYTES),
    firstXid: options.firstXid ?? 1,
    env,
  }
}

export function requestTimeoutMs(options: ZooKeeperOptions): number {
  return options.requestTimeout === undefined
    ? sessionTimeoutMs(options)
    : toMs(options.requestTimeout, { name: 'requestTimeout', minMs: 1 })
}

function sessionTimeoutMs(options: ZooKeeperOptions): number {
  const ms = toMs(options.sessionTimeout ?? DEFAULT_SESSION_TIMEOUT_MS, { name: 'sessionTimeout', minMs: 1 })
  return Math.min(Math.round(ms), 2 ** 31 - 1)
}

function positive(name: string, value: number): number {
  if (Number.isSafeInteger(value) && value > 0) return value
  throw invalid(`${name} is ${value}, but must be a positive integer`)
}
