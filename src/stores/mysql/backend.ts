import type { Cancel, Env } from '../../base/env.js'
import { FewAtOnce } from '../../base/few-at-once.js'
import { CallBatcher } from '../shared/call-batcher.js'
import { MAINTENANCE_INTERVAL_MS } from '../shared/time.js'
import { MysqlClients, type MysqlLocalClient } from './clients.js'
import { type MysqlCall, sendCalls } from './line-calls.js'
import { MysqlRunner, type MysqlRunnerOptions } from './runner.js'
import { MOST_SWEPT } from './sql/sweep.js'
import { micros } from './values.js'

/** With so many, their line is locked for some tens of milliseconds. */
const MOST_CALLS = 500
/**
 * After this time the next batch of a line does not wait for the previous one, which may be hung.
 */
const LINE_PATIENCE_MS = 2000
/** After this time a batch no longer counts as under way. */
const CALL_PATIENCE_MS = 5000

export interface MysqlBackendOptions extends MysqlRunnerOptions {
  readonly env: Env
  /** null: the server's clock, as it must be. A test gives its own. */
  readonly clock: Env | null
  readonly retentionMs: number
}

/** What the clients of one store value share: the pool, and news for each other. */
export class MysqlBackend {
  readonly runner: MysqlRunner
  readonly clients = new MysqlClients()
  readonly env: Env
  readonly #options: MysqlBackendOptions
  readonly #batcher: CallBatcher<MysqlCall>
  #cancelMaintenance: Cancel | undefined

  constructor(options: MysqlBackendOptions) {
    const { env } = options
    this.#options = options
    this.env = env
    this.runner = new MysqlRunner(options)
    this.#batcher = new CallBatcher({
      env,
      // The pool's own queue would delay the pulses behind claims, and fails after its time-out.
      limit: new FewAtOnce({ env, most: () => this.runner.atOnce, patienceMs: CALL_PATIENCE_MS }),
      mostCalls: MOST_CALLS,
      patienceMs: LINE_PATIENCE_MS,
      send: (calls) => this.#send(calls),
    })
  }

  join(client: MysqlLocalClient): void {
    this.runner.use()
    this.clients.add(client)
  }

  /** The last client closes the pool; the next one opens it again. */
  async leave(client: MysqlLocalClient): Promise<void> {
    if (!this.clients.remove(client)) return
    this.#cancelMaintenance?.()
    this.#cancelMaintenance = undefined
    await this.runner.close()
  }

  /** The time as the last argument of a routine. */
  get at(): string {
    const { clock } = this.#options
    return clock ? micros(clock.wallMs()) : 'NULL'
  }

  /** Claims and releases of one line keep their order. */
  submit(call: MysqlCall): Promise<unknown> {
    return this.#batcher.submit(call.line, call)
  }

  /** Starts the maintenance with the first claim: a client that only reads does none. */
  maintain(): void {
    if (this.#cancelMaintenance) return
    // Spread, so that processes that were started together do not all begin at once.
    const ms = MAINTENANCE_INTERVAL_MS * (0.5 + this.env.random() / 2)
    this.#cancelMaintenance = this.env.timer(ms, () => void this.#maintainOnce(), { keepAlive: false })
  }

  /** Removes everything that is no longer used, now. */
  async sweep(): Promise<void> {
    this.runner.use()
    try {
      // The routine removes some at a time, so that nothing stays locked for long.
      while ((await this.#sweepOnce(0)) > 0) {}
    } finally {
      if (this.clients.isEmpty) await this.runner.close()
    }
  }

  /** Clients of this store value are told before the callers are answered. */
  async #send(calls: readonly MysqlCall[]): Promise<unknown[]> {
    const { reply, news } = await sendCalls(this.runner, calls, this.at)
    const [{ space, resource }] = calls as [MysqlCall]
    this.clients.tell(space, news, () => resource)
    return reply
  }

  async #sweepOnce(everyMs: number): Promise<number> {
    const values = [micros(everyMs), micros(this.#options.retentionMs), this.at]
    const [row = '{"reply":0}'] = await this.runner.call('sweep', values)
    return (JSON.parse(row) as { reply: number }).reply
  }

  async #maintainOnce(): Promise<void> {
    try {
      let removed = await this.#sweepOnce(MAINTENANCE_INTERVAL_MS)
      while (removed >= MOST_SWEPT) removed = await this.#sweepOnce(0)
    } catch {
      // Calls that a caller waits for report what fails: a missing right, a server out of reach.
    }
    // The last client may have left meanwhile.
    if (!this.#cancelMaintenance) return
    this.#cancelMaintenance = undefined
    this.maintain()
  }
}
