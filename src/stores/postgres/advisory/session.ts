import type { Cancel, Env } from '../../../base/env.js'
import { quietly } from '../../../base/quietly.js'
import type { LockSession } from '../../../drivers/session-locks/server.js'
import type { Value } from '../driver.js'
import { isAnswer, outOfReach } from '../failures.js'
import type { PgPool, PgPoolClient } from '../pg.js'

/** So often a session that has nothing else to do is asked whether it lives. */
const ASK_EVERY_MS = 2000
/** A session that answers nothing for so long is taken for dead. */
const SILENT_AFTER_MS = 10_000

/** The server's process of each connection, also from earlier sessions. */
const pids = new WeakMap<PgPoolClient, number>()

/** One connection of a pool for as long as it has locks: they are its own, and end with it. Asks one thing at a time. */
export class Session implements LockSession {
  readonly #client: PgPoolClient
  readonly #env: Env
  readonly #onLoss: (reason: Error) => void
  #isOver = false
  #pid: number | undefined
  #last: Promise<unknown> = Promise.resolve()
  #underWay = 0
  #cancelQuestion: Cancel = () => {}

  private constructor(client: PgPoolClient, env: Env, onLoss: (reason: Error) => void) {
    this.#client = client
    this.#env = env
    this.#onLoss = onLoss
    client.on('error', this.#lose)
    client.on('end', this.#lose)
    this.#askLater()
  }

  static async open(pool: PgPool, env: Env, onLoss: (reason: Error) => void): Promise<Session> {
    return new Session(await pool.connect(), env, onLoss)
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** The server's process, once it is known. */
  get pid(): number | undefined {
    return this.#pid ?? pids.get(this.#client)
  }

  /**
   * The first column of the first row. The server may take `patienceMs` for it. A session that is over asks nothing any more. An error of the
   * client's own, such as its time-out for queries, ends the session: the server may still do what was asked, and lock.
   */
  ask(text: string, values: readonly Value[], patienceMs = 0): Promise<string | null> {
    this.#underWay++
    const answer = this.#last.then(() => this.#ask(text, values, patienceMs))
    this.#last = answer.catch(() => {}).finally(() => this.#underWay--)
    return answer
  }

  /** Whether this process of the server has always been the one that answers. */
  isProcess(pid: number): boolean {
    this.#pid ??= pid
    pids.set(this.#client, this.#pid)
    return this.#pid === pid
  }

  /** Gives the connection back as it was, after what is under way: the caller has unlocked everything, and asks no more. */
  close(): void {
    this.#cancelQuestion()
    void this.#last.then(() => {
      if (!this.#isOver) this.#leave(false)
    })
  }

  /** Ends it, and with it all its locks. */
  destroy(reason: Error): void {
    this.#lose(reason)
  }

  async #ask(text: string, values: readonly Value[], patienceMs: number): Promise<string | null> {
    if (this.#isOver) throw outOfReach('its session has ended')
    const withinMs = patienceMs + SILENT_AFTER_MS
    const onSilence = (): void => this.#lose(outOfReach(`no answer within ${withinMs} ms`))
    const cancel = this.#env.timer(withinMs, onSilence, { keepAlive: false })
    try {
      const { rows } = await this.#client.query({ text, values: [...values], rowMode: 'array' })
      return ((rows[0] as unknown[] | undefined)?.[0] ?? null) as string | null
    } catch (error) {
      if (!isAnswer(error)) this.#lose(outOfReach('no answer', error))
      throw error
    } finally {
      cancel()
    }
  }

  #askLater(): void {
    const ask = (): void => {
      // Whether it failed is told by the connection itself, or by its silence.
      if (this.#underWay === 0) this.ask('SELECT 1', []).catch(() => {})
      this.#askLater()
    }
    this.#cancelQuestion = this.#env.timer(ASK_EVERY_MS, ask, { keepAlive: false })
  }

  readonly #lose = (reason?: Error): void => {
    if (this.#isOver) return
    this.#leave(true)
    this.#onLoss(reason ?? outOfReach('the connection has ended'))
  }

  #leave(isDestroyed: boolean): void {
    this.#isOver = true
    this.#cancelQuestion()
    quietly(() => {
      this.#client.off('end', this.#lose)
      // A connection that is ended may still complain.
      if (isDestroyed) this.#client.on('error', () => {})
      this.#client.off('error', this.#lose)
    })
    quietly(() => this.#client.release(isDestroyed))
  }
}
