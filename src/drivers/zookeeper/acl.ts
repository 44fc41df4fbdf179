import { createHash } from 'node:crypto'
import type { Acl } from './records.js'

/** The permissions of an ACL, to be added up. */
export const Perms = { read: 1, write: 2, create: 4, delete: 8, admin: 16, all: 31 } as const

/** Anyone may do everything. */
export const OPEN: readonly Acl[] = [{ perms: Perms.all, scheme: 'world', id: 'anyone' }]

/**
 * Only the user that is authenticated on the connection which creates the node may do anything with
 * it.
 */
export const CREATOR_ALL: readonly Acl[] = [{ perms: Perms.all, scheme: 'auth', id: '' }]

/**
 * The ACL entry of a user of the `digest` scheme.
 *
 * @example
 * ```ts
 * import { digestAcl, Perms, ZooKeeperClient } from 'holdfast/zookeeper/client'
 *
 * const zk = new ZooKeeperClient('127.0.0.1:2181', { auth: [{ scheme: 'digest', credentials: 'app:secret' }] })
 * await zk.create('/private', { acl: [digestAcl('app', 'secret'), digestAcl('reader', 'other', Perms.read)] })
 * ```
 */
export function digestAcl(user: string, password: string, perms: number = Perms.all): Acl {
  const hash = createHash('sha1').update(`${user}:${password}`).digest('base64')
  return { perms, scheme: 'digest', id: `${user}:${hash}` }
}
