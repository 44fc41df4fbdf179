export { MemcachedError } from './errors.js'
export type { MetaReply } from './replies.js'
export { type MemcachedLogin, MemcachedServer, type MemcachedStats } from './server.js'
export { chooseServer, parseMemcachedServers } from './servers.js'
