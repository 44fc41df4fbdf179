import { type Cancel, systemEnv } from '../../../base/env.js'
import { quietly } from '../../../base/quietly.js'
import type { LockSession } from '../../../drivers/session-locks/server.js'
import type { Changed, Lent } from '../driver.js'
import { isConnectionOver, outOfReach } from '../failures.js'

/** How often a connection that has nothing to do is asked for a sign of life: the server, or what is in between, ends those that rest for long. */
const PROBE_MS = 5000
/** A connection that has not answered for so long is taken for dead. */
const SILENCE_MS = 15_000

/** What is used of either package's connection to hear of its end. */
interface Emitter {
  on(event: string, listener: (reason?: unknown) => void): unknown
  removeListener(event: string, listener: (reason?: unknown) => void): unknown
}

const ENDS = ['error', 'end'] as const

/** One connection, whose end is told at once: everything that was locked on it is free then. Statements go one after the other. */
export class Session implements LockSession {
  readonly #connection: Lent
  readonly #onEnd: (reason: Error) => void
  #last: Promise<unknown> = Promise.resolve()
  #underWay = 0
  #isOver = false
  /** Rejects what is under way: mysql2 does not, when a connection is destroyed. */
  #abandon: (reason: Error) => void = () => {}
  #stopProbing: Cancel = () => {}
  readonly #listener = (reason?: unknown): void => this.#end(reason)

  constructor(connection: Lent, onEnd: (reason: Error) => void) {
    this.#connection = connection
    this.#onEnd = onEnd
    for (const event of ENDS) (connection.own as Emitter).on(event, this.#listener)
    this.#probe()
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** The first column of the rows of the answer, for which the server may take `patienceMs`. A failure of the connection ends the session; one of the statement does not. */
  query(sql: string, patienceMs = 0): Promise<string[]> {
    return this.#inTurn(() => this.#connection.query(sql), patienceMs)
  }

  /** One UPDATE or INSERT. */
  change(sql: string): Promise<Changed> {
    return this.#inTurn(() => this.#connection.change(sql), 0)
  }

  close(): void {
    this.#stopProbing()
    void this.#last.then(() => {
      if (!this.#finish()) return
      quietly(() => {
        for (const event of ENDS) (this.#connection.own as Emitter).removeListener(event, this.#listener)
      })
      this.#connection.release()
    })
  }

  destroy(reason: Error): void {
    this.#end(reason)
  }

  #inTurn<T>(ask: () => Promise<T>, patienceMs: number): Promise<T> {
    this.#underWay++
    const mine = this.#last.then(() => this.#ask(ask, patienceMs))
    this.#last = mine.catch(() => {}).finally(() => this.#underWay--)
    return mine
  }

  async #ask<T>(ask: () => Promise<T>, patienceMs: number): Promise<T> {
    if (this.#isOver) throw outOfReach('the connection has ended')
    const onSilence = (): void => this.#end(outOfReach('no answer'))
    const cancel = systemEnv.timer(patienceMs + SILENCE_MS, onSilence, { keepAlive: false })
    try {
      return await new Promise((resolve, reject) => {
        this.#abandon = reject
        ask().then(resolve, reject)
      })
    } catch (error) {
      if (isConnectionOver(error)) this.#end(error)
      throw error
    } finally {
      cancel()
    }
  }

  #probe(): void {
    this.#stopProbing = systemEnv.timer(
      PROBE_MS,
      () => {
        // What it rejects with has ended the session already.
        if (this.#underWay === 0) void this.query('SELECT 1').catch(() => {})
        this.#probe()
      },
      { keepAlive: false },
    )
  }

  #end(reason: unknown): void {
    if (!this.#finish()) return
    this.#connection.destroy()
    const error = outOfReach(reason instanceof Error ? reason.message : 'the connection has ended', reason)
    this.#abandon(error)
    this.#onEnd(error)
  }

  #finish(): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    this.#stopProbing()
    return true
  }
}
