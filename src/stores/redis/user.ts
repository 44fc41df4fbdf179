import type { Env } from '../../base/env.js'
import type { Replicas } from './driver.js'
import { Ears } from './ears.js'
import { Runner, type RunnerOptions } from './runner.js'
import { Turns } from './turns.js'

export interface RedisUserOptions extends Omit<RunnerOptions, 'onSuspicion'> {
  readonly prefix: string
}

/** What the clients of one store value share: the command connection, the one for messages, and the turns. */
export class RedisUser {
  readonly runner: Runner
  readonly turns: Turns
  readonly ears: Ears
  readonly env: Env
  readonly prefix: string
  readonly replicas: Replicas | null
  #clients = 0

  constructor(options: RedisUserOptions) {
    this.env = options.env
    this.prefix = options.prefix
    this.replicas = options.replicas
    this.runner = new Runner({ ...options, onSuspicion: () => this.ears.reopen() })
    this.turns = new Turns(this.runner, options.replicas)
    this.ears = new Ears(options.env, options.prefix, () => this.runner.open())
  }

  join(): void {
    this.runner.use()
    this.#clients++
  }

  /** With the last client goes what was opened; the next one opens it anew. */
  async leave(): Promise<void> {
    this.#clients--
    if (this.#clients > 0) return
    this.ears.close()
    await this.runner.close()
  }
}
