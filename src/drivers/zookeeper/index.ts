export { CREATOR_ALL, digestAcl, OPEN, Perms } from './acl.js'
export {
  type CallOptions,
  type CreateOptions,
  type Data,
  type MultiOperation,
  type ReadOptions,
  type VersionOptions,
  ZooKeeperClient,
} from './client.js'
export { ZooKeeperError, type ZooKeeperErrorCode } from './errors.js'
export type { Credentials, SessionEvent, SessionInfo, SessionListener } from './events.js'
export type { MultiResult } from './multi.js'
export type { CreateMode } from './operations.js'
export type { ZooKeeperOptions } from './options.js'
export type { Acl, Stat } from './records.js'
export type { Answer } from './request.js'
export type { WatchEvent, WatchListener } from './watches.js'
