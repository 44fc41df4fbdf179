import type { Cancel, Env } from '../../base/env.js'
import { HoldfastError } from '../../base/errors.js'
import { nothing } from '../../base/nothing.js'
import { quietly } from '../../base/quietly.js'

/** A connection of a driver, as sessions use it. */
export interface SessionConnection {
  readonly events: ConnectionEvents
  ping(): Promise<unknown>
  /** Returns the connection to the pool. */
  release(): void
  /** Ends the connection, whatever it is doing. */
  destroy(): void
  /** Whether the connection cannot be used after this error. */
  isFatal(error: unknown): boolean
  unreachable(message: string, cause?: unknown): HoldfastError
}

/** All drivers report the end of a connection by these two events. */
export interface ConnectionEvents {
  on(event: 'error' | 'end', listener: (reason?: unknown) => void): unknown
  removeListener(event: 'error' | 'end', listener: (reason?: unknown) => void): unknown
}

export interface DatabaseSessionSettings {
  readonly env: Env
  /** An idle connection is pinged at this interval. */
  readonly pingEveryMs: number
  /** A connection that does not answer for this time counts as dead. */
  readonly silentAfterMs: number
  /** Called once if the session ends before it is closed. */
  onEnd(reason: HoldfastError): void
}

const END_EVENTS = ['error', 'end'] as const

/** A connection taken out of a pool for as long as it holds locks: they end with it. */
export class DatabaseSession<C extends SessionConnection> {
  readonly connection: C
  readonly #settings: DatabaseSessionSettings
  #hasEnded = false
  /** Statements run one after the other. */
  #last: Promise<unknown> = Promise.resolve()
  #pending = 0
  #rejectCurrent: (reason: Error) => void = nothing
  #cancelPing: Cancel = nothing
  readonly #onEnd = (reason?: unknown): void => this.#end(reason)

  constructor(connection: C, settings: DatabaseSessionSettings) {
    this.connection = connection
    this.#settings = settings
    for (const event of END_EVENTS) connection.events.on(event, this.#onEnd)
    this.#pingLater()
  }

  get hasEnded(): boolean {
    return this.#hasEnded
  }

  ping(): Promise<unknown> {
    return this.run((connection) => connection.ping())
  }

  /**
   * Runs a statement that the server may take `allowedMs` longer for than for others. A fatal error
   * ends the session: the server may still do what it was asked, and lock.
   */
  run<T>(statement: (connection: C) => Promise<T>, allowedMs = 0): Promise<T> {
    this.#pending++
    const answer = this.#last.then(() => this.#run(statement, allowedMs))
    this.#last = answer.catch(nothing).finally(() => this.#pending--)
    return answer
  }

  /** Returns the connection to the pool after the pending statements. It must hold no lock. */
  close(): void {
    this.#cancelPing()
    void this.#last.then(() => {
      if (!this.#finish()) return
      quietly(() => {
        for (const event of END_EVENTS) this.connection.events.removeListener(event, this.#onEnd)
      })
      quietly(() => this.connection.release())
    })
  }

  /** Ends the connection, and all its locks with it. */
  destroy(reason: HoldfastError): void {
    this.#end(reason)
  }

  async #run<T>(statement: (connection: C) => Promise<T>, allowedMs: number): Promise<T> {
    const { connection } = this
    if (this.#hasEnded) throw connection.unreachable('the connection has ended')
    const { env, silentAfterMs } = this.#settings
    const withinMs = allowedMs + silentAfterMs
    const onSilence = (): void => this.#end(connection.unreachable(`no answer within ${withinMs} ms`))
    const cancel = env.timer(withinMs, onSilence, { keepAlive: false })
    try {
      return await new Promise<T>((resolve, reject) => {
        // mysql2 never rejects the statements of a destroyed connection.
        this.#rejectCurrent = reject
        statement(connection).then(resolve, reject)
      })
    } catch (error) {
      if (connection.isFatal(error)) this.#end(error)
      throw error
    } finally {
      cancel()
    }
  }

  #pingLater(): void {
    const { env, pingEveryMs } = this.#settings
    const onTime = (): void => {
      // A failed ping ends the session, which reports it.
      if (this.#pending === 0) this.ping().catch(nothing)
      this.#pingLater()
    }
    this.#cancelPing = env.timer(pingEveryMs, onTime, { keepAlive: false })
  }

  /** The listeners stay: without them, errors of a destroyed connection would end the process. */
  #end(reason: unknown): void {
    if (!this.#finish()) return
    quietly(() => this.connection.destroy())
    const message = reason instanceof Error ? reason.message : 'the connection has ended'
    const error = reason instanceof HoldfastError ? reason : this.connection.unreachable(message, reason)
    this.#rejectCurrent(error)
    this.#settings.onEnd(error)
  }

  #finish(): boolean {
    if (this.#hasEnded) return false
    this.#hasEnded = true
    this.#cancelPing()
    return true
  }
}
