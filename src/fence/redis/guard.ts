import { invalid } from '../../base/errors.js'
import { checkName } from '../../base/names.js'
import { checkOptions } from '../../base/options.js'
import { checkFenced, type Fenced, type FenceRegister, fenceOf, refuseStale } from '../fenced.js'
import { type Evaluate, evaluator, type RedisClient, type RedisValue } from './client.js'
import { redisFenceKey, resourceFenceKey } from './keys.js'
import { CHECK_SCRIPT, guardScript, newestIn, SET_SCRIPT } from './script.js'

/** The keys and arguments of a guarded script, without the fence. */
export interface GuardedScript {
  /**
   * Its KEYS, at least one. The fence is remembered beside the first: all scripts for that data
   * must begin with it.
   */
  keys: string[]
  /** Its ARGV. */
  arguments?: RedisValue[] | undefined
}

/**
 * Guarded writes in Redis or Valkey; check and write are one script. The fence key never expires:
 * without it a stale write would pass, so delete it only together with the lock. Made by
 * `redisGuard`.
 */
export class RedisGuard implements FenceRegister {
  readonly #evaluate: Evaluate

  /** @internal */
  constructor(evaluate: Evaluate) {
    this.#evaluate = evaluate
  }

  /**
   * Sets a key. Throws STALE_FENCE if a newer fence has written it. A missing key is created.
   *
   * @example
   * ```ts
   * import type { Hold } from 'holdfast'
   * import type { RedisGuard } from 'holdfast/fence'
   *
   * export async function publish(hold: Hold, guard: RedisGuard) {
   *   await guard.set(hold, 'report:today', JSON.stringify({ total: 12 }))
   * }
   * ```
   */
  async set(hold: Fenced | number, key: string, value: RedisValue): Promise<void> {
    await this.#guarded(hold, SET_SCRIPT, redisFenceKey(checkName(key, 'The key')), [key], [value])
  }

  /**
   * Runs a Lua script. Throws STALE_FENCE, and does nothing, if a newer fence was seen beside its
   * first key.
   *
   * @example
   * ```ts
   * import type { Hold } from 'holdfast'
   * import type { RedisGuard } from 'holdfast/fence'
   *
   * export function addPoints(hold: Hold, guard: RedisGuard) {
   *   const script = "return redis.call('HINCRBY', KEYS[1], 'points', ARGV[1])"
   *   return guard.run(hold, script, { keys: ['player:7'], arguments: ['10'] })
   * }
   * ```
   */
  async run(hold: Fenced | number, script: string, given: GuardedScript): Promise<unknown> {
    const { keys, arguments: values = [] } = checkOptions(
      given,
      { keys: true, arguments: true },
      "{ keys: ['player:7'] }",
    )
    const [first] = keys
    if (first === undefined)
      throw invalid('A guarded script needs a key: the fence is remembered beside the first one')
    return this.#guarded(hold, guardScript(script), redisFenceKey(checkName(first, 'The key')), keys, values)
  }

  /**
   * Checks the fence of a resource and remembers it. Throws STALE_FENCE if a newer one was seen.
   * The result may be outdated when you get it: for a write in Redis use `set` or `run`.
   */
  async check(hold: Fenced): Promise<void> {
    await this.#guarded(hold, CHECK_SCRIPT, resourceFenceKey(checkFenced(hold).resource), [], [])
  }

  async #guarded(
    hold: Fenced | number,
    script: string,
    fenceKey: string,
    keys: string[],
    values: RedisValue[],
  ): Promise<unknown> {
    const fence = String(fenceOf(hold))
    try {
      return await this.#evaluate(script, [fenceKey, ...keys], [fence, ...values])
    } catch (error) {
      refuseStale(hold, newestIn(error) ?? 0)
      throw error
    }
  }
}

/**
 * Guarded writes in Redis or Valkey, through a client of `ioredis`, `iovalkey` or `redis`.
 *
 * @example
 * ```ts
 * import type { Hold } from 'holdfast'
 * import { type RedisClient, redisGuard } from 'holdfast/fence'
 *
 * export async function publish(hold: Hold, client: RedisClient, text: string) {
 *   await redisGuard(client).set(hold, 'news', text)
 * }
 * ```
 */
export function redisGuard(client: RedisClient): RedisGuard {
  return new RedisGuard(evaluator(client))
}
