import { type Cancel, systemEnv } from '../../../base/env.js'
import type { Lent } from '../driver.js'
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
export class Session {
  readonly #connection: Lent
  readonly #onEnd: (reason: unknown) => void
  #last: Promise<unknown> = Promise.resolve()
  #isOver = false
  #stopProbing: Cancel = () => {}
  readonly #listener = (reason?: unknown): void => this.#end(reason)

  constructor(connection: Lent, onEnd: (reason: unknown) => void) {
    this.#connection = connection
    this.#onEnd = onEnd
    for (const event of ENDS) (connection.own as Emitter).on(event, this.#listener)
    this.#probe()
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** The first column of the rows of the answer. A failure of the connection ends the session; one of the statement does not. */
  query(sql: string): Promise<string[]> {
    const mine = this.#last.then(() => this.#ask(sql))
    this.#last = mine.catch(() => {})
    return mine
  }

  /** Gives the connection back; nothing may be locked on it any more. */
  giveBack(): void {
    if (!this.#finish()) return
    for (const event of ENDS) (this.#connection.own as Emitter).removeListener(event, this.#listener)
    this.#connection.release()
  }

  async #ask(sql: string): Promise<string[]> {
    if (this.#isOver) throw outOfReach('the connection has ended')
    const cancel = systemEnv.timer(SILENCE_MS, () => this.#end(outOfReach('no answer')), { keepAlive: false })
    try {
      return await this.#connection.query(sql)
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
        void this.query('SELECT 1').catch(() => {})
        this.#probe()
      },
      { keepAlive: false },
    )
  }

  #end(reason: unknown): void {
    if (!this.#finish()) return
    this.#connection.destroy()
    this.#onEnd(reason)
  }

  #finish(): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    this.#stopProbing()
    return true
  }
}
