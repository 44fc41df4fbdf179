import type { Cancel, Env } from '../../base/env.js'
import { FewAtOnce } from '../../base/few-at-once.js'
import type { Push } from '../../contract/store.js'
import type { Driver, Value } from './driver.js'
import { Ears } from './ears.js'
import { closed, explain, isMissing, isUndone } from './failures.js'
import { Installation } from './install.js'
import { inSchema } from './schema.js'
import { decodePush } from './text.js'
import { Turns, type TurnsContext } from './turns.js'

export interface PostgresUserOptions {
  readonly env: Env
  /** A clock other than the server's. */
  readonly clock: Env | null
  readonly schema: string
  readonly listen: boolean
  readonly retentionMs: number
  openDriver(): Promise<Driver>
}

/** A client of the store value. */
export interface Client {
  push(news: Push): void
  /** Messages are heard from now on, or are not any more. */
  onGap(): void
}

/** So often a transaction that the server has undone is made again at once. Then the caller decides. */
const MOST_ATTEMPTS = 10
const HEAR_WITHIN_MS = 200
/** A call that takes longer may be on a connection that is dead: those behind it take another one. */
const CALL_PATIENCE_MS = 5000
const SWEEP_EVERY_MS = 60_000
/** Its lines are locked until it is done. */
const MOST_SWEPT = 1000

/** What the clients of one store value share: the pool, the schema, the connection for messages. */
export class PostgresUser {
  readonly env: Env
  readonly ears: Ears
  /** Where this store value is told what became of its claims. */
  readonly channel: string
  readonly #options: PostgresUserOptions
  readonly #clients = new Map<string, Client>()
  readonly #turns = new Map<string, Turns>()
  /** Claims and releases. In the line of the pool itself they would stand before the pulses, and fail after its time-out. */
  readonly #calls: FewAtOnce
  #atOnce = 1
  readonly #installation: Installation
  #joined = 0
  #driver: Promise<Driver> | undefined
  #cancelSweep: Cancel = () => {}

  constructor(options: PostgresUserOptions) {
    this.#options = options
    this.#installation = new Installation(options.schema)
    this.env = options.env
    this.#calls = new FewAtOnce({ env: options.env, most: () => this.#atOnce, patienceMs: CALL_PATIENCE_MS })
    this.channel = `holdfast_${options.env.id()}`
    this.ears = new Ears({
      env: options.env,
      channel: this.channel,
      open: () => this.#open(),
      onMessage: (text) => this.#tell([JSON.parse(text)]),
      onGap: () => {
        for (const client of this.#clients.values()) client.onGap()
      },
    })
  }

  /** Gives the name by which the server knows the client, together with the channel. */
  join(client: Client): string {
    if (this.#clients.size === 0) this.#sweepLater()
    const name = String(++this.#joined)
    this.#clients.set(name, client)
    return name
  }

  /** With the last client goes what was opened; the next one opens it anew. */
  async leave(name: string): Promise<void> {
    this.#clients.delete(name)
    if (this.#clients.size > 0) return
    this.#cancelSweep()
    this.ears.close()
    const driver = this.#driver
    this.#driver = undefined
    this.#installation.forget()
    await (await driver?.catch(() => undefined))?.close()
  }

  /** How many connections it may open, with the one for messages. */
  get connections(): number {
    return this.#atOnce + 1
  }

  get mayListen(): boolean {
    return this.#options.listen
  }

  /** Asks the server about itself, whether our schema is there or not. */
  async askServer(sql: string): Promise<string | null> {
    try {
      return await (await this.#open()).ask(sql, [])
    } catch (error) {
      throw explain(error)
    }
  }

  /** Somebody here wants to be told. */
  listen(): void {
    if (this.#options.listen) this.ears.listen()
  }

  turnsOf(space: string): Turns {
    const known = this.#turns.get(space)
    if (known) return known
    const call: TurnsContext['call'] = (routine, values) => this.call(routine, values)
    const inTurn: TurnsContext['inTurn'] = (work) => this.#calls.run(work)
    const turns = new Turns({ env: this.env, space, channel: this.channel, call, inTurn })
    this.#turns.set(space, turns)
    return turns
  }

  /** Resolves when messages are heard, or are not worth waiting for. */
  async heard(): Promise<void> {
    if (!this.#options.listen || this.ears.isHearing) return
    let cancel: Cancel = () => {}
    const patience = new Promise<void>((resolve) => {
      cancel = this.env.timer(HEAR_WITHIN_MS, resolve, { keepAlive: true })
    })
    await Promise.race([this.ears.known, patience])
    cancel()
  }

  /** Calls a routine that gives `{ reply, news }`, and tells the own clients the news. */
  async call(routine: string, values: readonly Value[]): Promise<unknown> {
    const { reply, news } = (await this.look(routine, values)) as Answer
    this.#tell(news)
    return reply
  }

  /** Calls a routine that gives a JSON text, or nothing. */
  async look(routine: string, values: readonly Value[]): Promise<unknown> {
    const { clock } = this.#options
    const complete = [...values, clock ? String(Math.round(clock.wallMs() * 1000)) : null]
    const places = complete.map((_value, index) => `$${index + 1}`).join(', ')
    const answer = await this.ask(`SELECT holdfast.${routine}(${places})`, complete)
    return answer === null ? null : JSON.parse(answer)
  }

  /** One statement, written for the schema `holdfast`. */
  async ask(sql: string, values: readonly Value[]): Promise<string | null> {
    const text = inSchema(sql, this.#options.schema)
    for (let attempt = 1; ; attempt++) {
      try {
        const driver = await this.#open()
        await this.#installation.ensure(driver)
        return await driver.ask(text, values)
      } catch (error) {
        if (attempt >= MOST_ATTEMPTS || !(isUndone(error) || (isMissing(error) && attempt === 1)))
          throw explain(error)
        if (isMissing(error)) this.#installation.forget()
      }
    }
  }

  /** Removes what nobody uses any more, a part at a time; gives the number of lines. */
  async sweep(): Promise<number> {
    const { retentionMs } = this.#options
    for (let removed = 0; ; ) {
      const values = [String(retentionMs * 1000), String(MOST_SWEPT)]
      const some = Number(await this.ask('SELECT holdfast.sweep($1, $2)::text', values))
      removed += some
      if (some < MOST_SWEPT) return removed
    }
  }

  /** A call that comes after the last client has left must not open anything: nobody would close it. */
  #open(): Promise<Driver> {
    if (this.#clients.size === 0) return Promise.reject(closed())
    if (this.#driver) return this.#driver
    const driver = this.#options.openDriver()
    this.#driver = driver
    driver.then(
      ({ atOnce }) => {
        this.#atOnce = atOnce
      },
      () => {
        if (this.#driver === driver) this.#driver = undefined
      },
    )
    return driver
  }

  #tell(news: readonly News[]): void {
    for (const [client, push] of news) this.#clients.get(client)?.push(decodePush(push))
  }

  #sweepLater(): void {
    const { env, retentionMs } = this.#options
    const pauseMs = SWEEP_EVERY_MS * (0.9 + env.random() * 0.2)
    const sweep = (): void => {
      this.#sweepLater()
      // Whoever comes next tries again.
      this.ask('SELECT holdfast.sweep_now_and_then($1)::text', [String(retentionMs * 1000)]).catch(() => {})
    }
    this.#cancelSweep = env.timer(pauseMs, sweep, { keepAlive: false })
  }
}

type News = readonly [client: string, push: Push]

interface Answer {
  readonly reply: unknown
  readonly news: readonly News[]
}
