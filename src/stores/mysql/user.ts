import type { Cancel, Env } from '../../base/env.js'
import { Clients, type LocalClient } from './clients.js'
import { Runner, type RunnerOptions } from './runner.js'
import { Turns } from './turns.js'
import { micros } from './values.js'

const SWEEP_EVERY_MS = 60_000

export interface MysqlUserOptions extends RunnerOptions {
  readonly env: Env
  /** null: the server's clock, as it must be. A test gives its own. */
  readonly clock: Env | null
  readonly retentionMs: number
}

/** What the clients of one store value share: the pool, and the knowledge of each other. */
export class MysqlUser {
  readonly runner: Runner
  readonly turns: Turns
  readonly clients = new Clients()
  readonly env: Env
  readonly #options: MysqlUserOptions
  #stopSweeping: Cancel | undefined

  constructor(options: MysqlUserOptions) {
    this.#options = options
    this.env = options.env
    this.runner = new Runner(options)
    this.turns = new Turns({
      runner: this.runner,
      at: () => this.at,
      tell: (news, { space, resource }) => this.clients.tell(space, news, () => resource),
    })
  }

  join(client: LocalClient): void {
    this.runner.use()
    this.clients.add(client)
  }

  /** With the last client goes what was opened; the next one opens it anew. */
  async leave(client: LocalClient): Promise<void> {
    if (!this.clients.remove(client)) return
    this.#stopSweeping?.()
    this.#stopSweeping = undefined
    await this.runner.close()
  }

  /** The time as the last argument of a routine. */
  get at(): string {
    const { clock } = this.#options
    return clock ? micros(clock.wallMs()) : 'NULL'
  }

  /** From the first claim on: whoever uses lines removes what others have left. */
  keepSwept(): void {
    if (this.#stopSweeping) return
    // Not all processes that were started together at the same moment.
    const ms = SWEEP_EVERY_MS * (0.5 + this.env.random() / 2)
    this.#stopSweeping = this.env.timer(ms, () => void this.#sweepNowAndThen(), { keepAlive: false })
  }

  /** Removes everything that nobody uses any more, now. */
  async sweep(): Promise<void> {
    this.runner.use()
    try {
      // The routine takes some at a time, so that it locks nothing for long.
      while ((await this.#sweepOnce(0)) > 0) {}
    } finally {
      if (this.clients.isEmpty) await this.runner.close()
    }
  }

  async #sweepOnce(everyMs: number): Promise<number> {
    const values = [micros(everyMs), micros(this.#options.retentionMs), this.at]
    const [row = '{"reply":0}'] = await this.runner.call('sweep', values)
    return (JSON.parse(row) as { reply: number }).reply
  }

  async #sweepNowAndThen(): Promise<void> {
    // Whoever lacks a right, or finds the server gone, hears of it by calls that somebody waits for.
    await this.#sweepOnce(SWEEP_EVERY_MS).catch(() => {})
    // The last client may have left meanwhile.
    if (!this.#stopSweeping) return
    this.#stopSweeping = undefined
    this.keepSwept()
  }
}
