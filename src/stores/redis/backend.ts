import type { Env } from '../../base/env.js'
import { RedisBatcher } from './batcher.js'
import type { RedisDriver, Replicas } from './driver.js'
import { explain } from './failures.js'
import type { Scripts } from './lua/script.js'
import { RedisRunner, type RedisRunnerOptions } from './runner.js'
import { RedisSubscription } from './subscription.js'

export interface RedisBackendOptions extends Omit<RedisRunnerOptions, 'onSuspicion'> {
  readonly prefix: string
}

/**
 * What the clients of one store value share: the connection for commands, the one for messages, and
 * the batches.
 */
export class RedisBackend {
  readonly runner: RedisRunner
  readonly batcher: RedisBatcher
  readonly subscription: RedisSubscription
  readonly env: Env
  readonly prefix: string
  readonly replicas: Replicas | null
  #clients = 0

  constructor(options: RedisBackendOptions) {
    this.env = options.env
    this.prefix = options.prefix
    this.replicas = options.replicas
    this.runner = new RedisRunner({ ...options, onSuspicion: () => this.subscription.reopen() })
    this.batcher = new RedisBatcher(this.runner, options.replicas)
    this.subscription = new RedisSubscription(options.env, options.prefix, () => this.runner.open())
  }

  async open(): Promise<RedisDriver> {
    try {
      return await this.runner.open()
    } catch (error) {
      throw explain(error)
    }
  }

  /** Runs a script on one key, or on several where this is no Cluster. */
  async run(scripts: Scripts, key: string | readonly string[], args: readonly string[]): Promise<unknown> {
    try {
      return await this.runner.run(scripts, typeof key === 'string' ? [key] : key, args)
    } catch (error) {
      throw this.runner.failureOf(error)
    }
  }

  join(): void {
    this.runner.use()
    this.#clients++
  }

  /** The last client closes what was opened; the next one opens it anew. */
  async leave(): Promise<void> {
    this.#clients--
    if (this.#clients > 0) return
    this.subscription.close()
    await this.runner.close()
  }
}
