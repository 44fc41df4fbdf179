import type { Script } from '../../../stores/redis/lua/script.js'
import { leaveFair, releaseFair, takeFair } from './lua/fair.js'
import { releaseMutex, renewMutex, takeMutex } from './lua/mutex.js'
import { releaseRead, releaseWrite, renewRead, renewWrite, takeRead, takeWrite } from './lua/read-write.js'
import { besideName, lockChannel, queueKey, readWriteChannel, timeoutsKey, tokenKey } from './names.js'

/** One kind of Redisson's locks: its keys, channels and scripts. */
export interface RedissonFormat {
  /** Locks of one family and name are the same key, and their owners enter again. */
  readonly family: 'lock' | 'read-write'
  /** What the owner's entries are counted as. */
  readonly entry: 'lock' | 'read' | 'write'
  keys(name: string): string[]
  /** Where a release is told. */
  channel(name: string): string
  readonly take: Script
  readonly renew: Script
  readonly release: Script
  /** Of the fair lock: leaves the line. Each of its waiters has a channel of its own. */
  readonly leaveLine?: Script
}

export const mutexFormat: RedissonFormat = {
  family: 'lock',
  entry: 'lock',
  keys: (name) => [name],
  channel: lockChannel,
  take: takeMutex,
  renew: renewMutex,
  release: releaseMutex,
}

export const fencedFormat: RedissonFormat = { ...mutexFormat, keys: (name) => [name, tokenKey(name)] }

export const fairFormat: RedissonFormat = {
  ...mutexFormat,
  keys: (name) => [name, queueKey(name), timeoutsKey(name)],
  take: takeFair,
  release: releaseFair,
  leaveLine: leaveFair,
}

export const readFormat: RedissonFormat = {
  family: 'read-write',
  entry: 'read',
  keys: (name) => [name, besideName(name)],
  channel: readWriteChannel,
  take: takeRead,
  renew: renewRead,
  release: releaseRead,
}

export const writeFormat: RedissonFormat = {
  ...readFormat,
  entry: 'write',
  take: takeWrite,
  renew: renewWrite,
  release: releaseWrite,
}
