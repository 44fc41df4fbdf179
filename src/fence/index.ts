export { EtcdGuard, etcdFenceKey, etcdGuard } from './etcd/guard.js'
export type { Fenced, FenceRegister } from './fenced.js'
export { type ReplaceFileOptions, replaceFile } from './file/replace.js'
export { fencedFetch } from './http/client.js'
export {
  type FencedHandler,
  type FencedRequest,
  type HttpGuard,
  type HttpGuardOptions,
  httpGuard,
} from './http/guard.js'
export { FENCE_HEADER, fenceHeaders, parseFence } from './http/header.js'
export type { FenceProblem } from './http/problem.js'
export { type MemoryGuard, memoryGuard } from './memory.js'
export type { IoRedisClient, NodeRedisClient, RedisClient, RedisValue } from './redis/client.js'
export { type GuardedScript, type RedisGuard, redisGuard } from './redis/guard.js'
export { redisFenceKey } from './redis/keys.js'
export { guardScript } from './redis/script.js'
export type {
  MysqlClient,
  PgClient,
  PostgresJsClient,
  SqliteClient,
  SqliteClientStatement,
} from './sql/clients.js'
export type { FenceSql, SqlGuard, SqlGuardOptions } from './sql/guard.js'
export { mysqlGuard, postgresGuard, sqliteGuard } from './sql/index.js'
export type { SqliteGuard } from './sql/sqlite-guard.js'
export type { GuardedRow, GuardedUpdate } from './sql/statements.js'
