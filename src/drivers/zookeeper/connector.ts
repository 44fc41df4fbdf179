import type { ConnectionOptions } from 'node:tls'
import { backoffMs } from '../../base/backoff.js'
import { type Cancel, detached, type Env } from '../../base/env.js'
import type { HostRing } from '../hosts.js'
import { type ConnectionListener, ServerConnection } from './connection.js'
import type { SessionInfo } from './events.js'

export interface ConnectorSettings {
  readonly hosts: HostRing
  readonly tls: ConnectionOptions | null
  readonly timeoutMs: number
  /** Of the servers. */
  readonly tickMs: number
  readonly env: Env
}

const FIRST_RETRY_MS = 20
const LONGEST_RETRY_MS = 1000
/** For the few round trips that open a connection, however short the session. */
const LEAST_OPEN_MS = 100
const NO_SESSION: SessionInfo = { id: 0n, password: Buffer.alloc(16), timeoutMs: 0 }

/**
 * Opens the connections of a session, one at a time and each to the next server. Pauses between
 * rounds that fail.
 */
export class Connector {
  readonly #settings: ConnectorSettings
  #connection: ServerConnection | null = null
  /** Connections in a row that got no answer. */
  #failures = 0
  #lastFailure: Error | undefined
  #cancelRetry: Cancel = () => {}
  #isRetrying = false

  constructor(settings: ConnectorSettings) {
    this.#settings = settings
  }

  get connection(): ServerConnection | null {
    return this.#connection
  }

  /** Why the last connection failed, if no answer has come since. */
  get lastFailure(): Error | undefined {
    return this.#lastFailure
  }

  /** Connects, unless that is under way. `info`: the session to continue. */
  connect(info: SessionInfo | null, lastZxid: bigint, listener: ConnectionListener): void {
    if (this.#connection || this.#isRetrying) return
    const { hosts, tls, env, tickMs } = this.#settings
    const { id: sessionId, password } = info ?? NO_SESSION
    const timeoutMs = info?.timeoutMs ?? this.#settings.timeoutMs
    const request = { lastZxid, timeoutMs, sessionId, password }
    // Every server can be tried once while the session lives.
    const openWithinMs = Math.max(timeoutMs / (hosts.size + 1), LEAST_OPEN_MS)
    const settings = { host: hosts.next(), tls, request, openWithinMs, tickMs, env }
    try {
      // Outside the async context of the caller: the connection serves all callers.
      this.#connection = detached(() => new ServerConnection(settings, listener))
    } catch (error) {
      // Invalid TLS options throw at once.
      listener.onEnd(error instanceof Error ? error : new Error(String(error)))
    }
  }

  /** The connection has ended. `retry` is called after a pause that grows with the failures. */
  onEnd(reason: Error, retry: () => void): void {
    const { env, hosts } = this.#settings
    this.#connection = null
    this.#lastFailure = reason
    const rounds = Math.floor(this.#failures++ / hosts.size)
    const delayMs = rounds === 0 ? 0 : backoffMs(rounds, env.random(), FIRST_RETRY_MS, LONGEST_RETRY_MS)
    this.#isRetrying = true
    const onTime = (): void => {
      this.#isRetrying = false
      retry()
    }
    this.#cancelRetry = env.timer(delayMs, onTime, { keepAlive: false })
  }

  onAnswer(): void {
    this.#failures = 0
    this.#lastFailure = undefined
  }

  stop(reason: Error): void {
    this.#cancelRetry()
    this.#connection?.end(reason)
  }
}
