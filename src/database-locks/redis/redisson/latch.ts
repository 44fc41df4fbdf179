import { checkSignal } from '../../../base/abort.js'
import type { Duration } from '../../../base/duration.js'
import { HoldfastError, invalid } from '../../../base/errors.js'
import { checkOptions, type OptionNames } from '../../../base/options.js'
import { ANSWER_MS, readWait } from '../../limits.js'
import { Acquisition } from '../acquisition.js'
import { untilAnswered } from '../answers.js'
import type { PeerClaim, TakeAnswer } from '../claim.js'
import type { Pause } from '../pause.js'
import type { RedissonClient } from './client.js'
import { countDown, readNumber, setCount } from './lua/counters.js'
import { callKey, latchChannel } from './names.js'
import { everybody } from './wake-ups.js'

/** An answer counts however late it comes: a latch that was open is open for this wait. */
const ANSWER_KEPT_MS = 60_000

/** The options of `wait` of a latch. */
export interface RedissonLatchOptions {
  /** How long to wait until the latch opens. No limit by default. */
  wait?: Duration | undefined
  /** Ends the wait with ABORTED when it aborts. */
  signal?: AbortSignal | undefined
}

const LATCH_OPTIONS: OptionNames<RedissonLatchOptions> = { wait: true, signal: true }

/** A latch of Redisson. Made by `redissonLock(client).latch(name)`. */
export class RedissonLatch {
  /** The name that Redisson knows, too. */
  readonly name: string
  readonly #client: RedissonClient

  /** @internal */
  constructor(name: string, client: RedissonClient) {
    this.name = name
    this.#client = client
  }

  /** Sets the count, unless the latch is counting. Resolves with whether it did. */
  async trySetCount(count: number): Promise<boolean> {
    if (!Number.isSafeInteger(count) || count < 1)
      throw invalid(`count is ${String(count)}, but must be a whole number from 1 on`, this.name)
    const args = [count, latchChannel(this.name)]
    return (await this.#answer(() => this.#client.calls.run(setCount, [this.name], ...args))) === '1'
  }

  /** Counts down by one, and resolves with what is left. At 0 the latch opens, and is forgotten. */
  async countDown(): Promise<number> {
    const { calls } = this.#client
    const keys = [this.name, callKey(this.name, calls.env.id())]
    return Number(await this.#answer(() => calls.run(countDown, keys, latchChannel(this.name))))
  }

  /** What is left to count; 0 if the latch is open, or was never set. */
  async count(): Promise<number> {
    return Number(await this.#answer(() => this.#client.calls.run(readNumber, [this.name])))
  }

  /** Resolves when the latch is open. Throws ACQUIRE_TIMEOUT when the wait is over. */
  async wait(options: RedissonLatchOptions = {}): Promise<void> {
    const { wait, signal } = checkOptions(options, LATCH_OPTIONS, "{ wait: '1m' }")
    const { env } = this.#client.calls
    const request = { waitMs: readWait(wait), leaseMs: ANSWER_KEPT_MS, signal: checkSignal(signal) }
    const look = new LatchLook(this.#client, this.name)
    if (!(await new Acquisition(look, this.name, request, env).grant())) throw this.#late()
  }

  #late(): HoldfastError {
    const message = `The latch '${this.name}' did not open within the wait`
    return new HoldfastError('ACQUIRE_TIMEOUT', message, {
      resource: this.name,
      store: 'redis',
      retryable: true,
    })
  }

  #answer<T>(call: () => Promise<T>): Promise<T> {
    const { env } = this.#client.calls
    return untilAnswered(env, env.now() + ANSWER_MS, ANSWER_MS, call)
  }
}

/** A look at whether a latch is open. It takes nothing, so there is nothing to give back. */
class LatchLook implements PeerClaim {
  readonly hasPlace = false
  readonly #client: RedissonClient
  readonly #name: string

  constructor(client: RedissonClient, name: string) {
    this.#client = client
    this.#name = name
  }

  async take(): Promise<TakeAnswer> {
    const isGranted = (await this.#client.calls.run(readNumber, [this.#name])) === '0'
    return isGranted ? { isGranted, fence: null } : { isGranted, retryMs: this.#client.retryMs(-1) }
  }

  listen(pause: Pause): Promise<void> {
    return this.#client.wakeUps.listen(latchChannel(this.#name), pause, everybody)
  }

  unlisten(pause: Pause): void {
    this.#client.wakeUps.unlisten(latchChannel(this.#name), pause)
  }

  async renew(): Promise<boolean> {
    return true
  }

  async release(): Promise<boolean> {
    return true
  }

  async leave(): Promise<void> {}
}
