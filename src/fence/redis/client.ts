import { invalid } from '../../base/errors.js'

/** A client of `ioredis` or `iovalkey`, or a cluster of one of them. */
export interface IoRedisClient {
  // biome-ignore lint/suspicious/noExplicitAny: its own type is a list of overloads.
  eval(script: string, numberOfKeys: number, ...keysAndArguments: any[]): Promise<unknown>
  // biome-ignore lint/suspicious/noExplicitAny: only looked for, never called.
  defineCommand(...definition: any[]): unknown
}

/** A client, pool or cluster of `redis` (node-redis). */
export interface NodeRedisClient {
  // biome-ignore lint/suspicious/noExplicitAny: its own type depends on its modules.
  eval(script: string, options: { keys: string[]; arguments: any[] }): Promise<any>
}

/** A client that `redisGuard` takes. */
export type RedisClient = IoRedisClient | NodeRedisClient

/** A value or an argument for Redis: text or bytes. */
export type RedisValue = string | Buffer

export type Evaluate = (script: string, keys: string[], values: RedisValue[]) => Promise<unknown>

export function evaluator(client: RedisClient): Evaluate {
  if (typeof client?.eval !== 'function')
    throw invalid('The guard needs a client of ioredis, iovalkey or redis')
  if ('defineCommand' in client)
    return (script, keys, values) => client.eval(script, keys.length, ...keys, ...values)
  return (script, keys, values) => client.eval(script, { keys, arguments: values })
}
