import type { Cancel, Env } from '../../base/env.js'
import { FewAtOnce } from '../../base/few-at-once.js'
import { encodeText } from '../../base/text.js'
import type { Push } from '../../contract/store.js'
import { CallBatcher } from '../shared/call-batcher.js'
import { MAINTENANCE_INTERVAL_MS } from '../shared/time.js'
import type { Value } from './driver.js'
import { type PostgresRequest, routineFor } from './requests.js'
import { PostgresRunner, type PostgresRunnerOptions } from './runner.js'
import { IS_SWEEP_DUE, SWEEPS } from './sql/inspect.js'
import { PostgresSubscription } from './subscription.js'
import { decodePush } from './text.js'

export interface PostgresBackendOptions extends PostgresRunnerOptions {
  readonly env: Env
  /** A clock other than the server's, for tests. */
  readonly clock: Env | null
  readonly listen: boolean
  readonly retentionMs: number
}

/** A client of the store value. */
export interface PostgresClient {
  push(news: Push): void
  /** Messages are heard from now on, or no longer. */
  onGap(): void
}

/** The claims and releases of one line. */
interface LineCall {
  readonly space: string
  readonly resource: string
  readonly request: PostgresRequest
}

const HEAR_WITHIN_MS = 200
const MOST_CALLS = 500
/** A call that takes longer may be on a dead connection: the next one takes another. */
const CALL_PATIENCE_MS = 5000
/** The most lines that one sweep removes: they stay locked until it is done. */
const MOST_SWEPT = 1000

/** What the clients of one store value share: the pool, the schema, the subscription. */
export class PostgresBackend {
  readonly env: Env
  readonly runner: PostgresRunner
  readonly subscription: PostgresSubscription
  /** Where this store value is told about its claims. */
  readonly channel: string
  readonly #options: PostgresBackendOptions
  readonly #clients = new Map<string, PostgresClient>()
  readonly #batcher: CallBatcher<LineCall>
  #joined = 0
  /** A call has failed, and with its answer the news for our own clients may be lost. */
  #mayHaveLostNews = false
  #cancelMaintenance: Cancel = () => {}

  constructor(options: PostgresBackendOptions) {
    const { env } = options
    this.#options = options
    this.env = env
    this.runner = new PostgresRunner(options)
    this.channel = `holdfast_${env.id()}`
    this.#batcher = new CallBatcher({
      env,
      // The pool's own queue would delay the pulses behind claims, and fails after its time-out.
      limit: new FewAtOnce({ env, most: () => this.runner.atOnce, patienceMs: CALL_PATIENCE_MS }),
      mostCalls: MOST_CALLS,
      patienceMs: CALL_PATIENCE_MS,
      send: (calls) => this.#send(calls),
    })
    this.subscription = new PostgresSubscription({
      env,
      channel: this.channel,
      open: () => this.runner.open(),
      onMessage: (text) => this.#tell([JSON.parse(text)]),
      onGap: () => {
        for (const client of this.#clients.values()) client.onGap()
      },
    })
  }

  /** Gives the name by which the server knows the client, together with the channel. */
  join(client: PostgresClient): string {
    this.runner.use()
    if (this.#clients.size === 0) this.#maintainLater()
    const name = String(++this.#joined)
    this.#clients.set(name, client)
    return name
  }

  /** The last client closes the pool and the subscription; the next one opens them again. */
  async leave(name: string): Promise<void> {
    this.#clients.delete(name)
    if (this.#clients.size > 0) return
    this.#cancelMaintenance()
    this.subscription.close()
    await this.runner.close()
  }

  /** How many connections it may open, with the one for messages. */
  get connections(): number {
    return this.runner.atOnce + 1
  }

  get mayListen(): boolean {
    return this.#options.listen
  }

  get isHearing(): boolean {
    return this.subscription.isHearing
  }

  /** Opens the subscription, where the user allows it. */
  subscribe(): void {
    if (this.#options.listen) this.subscription.open()
  }

  /** Resolves when messages are heard, or are not worth waiting for. */
  async untilHearing(): Promise<void> {
    if (!this.#options.listen || this.isHearing) return
    let cancel: Cancel = () => {}
    const patience = new Promise<void>((resolve) => {
      cancel = this.env.timer(HEAR_WITHIN_MS, resolve, { keepAlive: true })
    })
    await Promise.race([this.subscription.known, patience])
    cancel()
  }

  /** Claims and releases of one line keep their order. */
  submit(space: string, name: string, request: PostgresRequest): Promise<unknown> {
    const resource = encodeText(name)
    return this.#batcher.submit(`${space}\0${resource}`, { space, resource, request })
  }

  /** Calls a routine that gives `{ reply, news }`, and tells the own clients the news. */
  async call(routine: string, values: readonly Value[]): Promise<unknown> {
    const { reply, news } = (await this.#askForNews(routine, values)) as Answer
    this.#tell(news)
    if (this.#mayHaveLostNews) {
      this.#mayHaveLostNews = false
      for (const client of this.#clients.values()) client.push({ type: 'gap' })
    }
    return reply
  }

  async #askForNews(routine: string, values: readonly Value[]): Promise<unknown> {
    try {
      return await this.query(routine, values)
    } catch (error) {
      this.#mayHaveLostNews = true
      throw error
    }
  }

  /** Calls a routine that gives a JSON text, or nothing. */
  async query(routine: string, values: readonly Value[]): Promise<unknown> {
    const { clock } = this.#options
    const complete = [...values, clock ? String(Math.round(clock.wallMs() * 1000)) : null]
    const placeholders = complete.map((_value, index) => `$${index + 1}`).join(', ')
    const answer = await this.runner.ask(`SELECT holdfast.${routine}(${placeholders})`, complete)
    return answer === null ? null : JSON.parse(answer)
  }

  /** Removes unused lines and states, some at a time; gives the number of lines. */
  async sweep(): Promise<number> {
    const [lines, ...others] = SWEEPS
    const removed = await this.#sweepAll(lines)
    for (const each of others) await this.#sweepAll(each)
    return removed
  }

  async #sweepAll(sql: string): Promise<number> {
    const values = [String(this.#options.retentionMs * 1000), String(MOST_SWEPT)]
    for (let removed = 0; ; ) {
      const some = Number(await this.runner.ask(sql, values))
      removed += some
      if (some < MOST_SWEPT) return removed
    }
  }

  async #send(calls: readonly LineCall[]): Promise<unknown[]> {
    const [{ space, resource }] = calls as [LineCall]
    const { routine, values } = routineFor(calls.map(({ request }) => request))
    return (await this.call(routine, [space, resource, ...values, this.channel])) as unknown[]
  }

  #tell(news: readonly News[]): void {
    for (const [client, push] of news) this.#clients.get(client)?.push(decodePush(push))
  }

  async #sweepIfDue(): Promise<void> {
    if ((await this.runner.ask(IS_SWEEP_DUE, [])) !== '0') await this.sweep()
  }

  #maintainLater(): void {
    const { env } = this.#options
    const pauseMs = MAINTENANCE_INTERVAL_MS * (0.9 + env.random() * 0.2)
    const maintain = (): void => {
      this.#maintainLater()
      // If it fails, another client or the next time makes up for it.
      this.#sweepIfDue().catch(() => {})
    }
    this.#cancelMaintenance = env.timer(pauseMs, maintain, { keepAlive: false })
  }
}

type News = readonly [client: string, push: Push]

interface Answer {
  readonly reply: unknown
  readonly news: readonly News[]
}
