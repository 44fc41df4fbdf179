import type { ClaimRequest } from '../../contract/store.js'
import type { MultiOperation, Stat, WatchListener, ZooKeeperClient } from '../../drivers/zookeeper/index.js'
import type { WrittenNode } from './batch.js'
import type { Departure } from './emptied.js'
import { hasCode } from './failures.js'
import type { ClaimName } from './names.js'
import type { MadeNode, OwnNode } from './own-nodes.js'
import { readData, type ZooKeeperSpace } from './space.js'

/** Makes a node at the end of the line, whose path is `prefix` and a number. */
export function createNode(
  { session, batch, openings, own }: ZooKeeperSpace,
  resource: string,
  prefix: string,
  data: string,
): Promise<WrittenNode> {
  const { acl } = session
  const joining = own.isIn(resource) ? batch : openings
  return joining.write({ type: 'create', path: prefix, mode: 'ephemeralSequential', data, acl }, resource)
}

/** The claim of a node that `createNode` has made. */
export function madeNode(
  { format }: ZooKeeperSpace,
  { id, permits, capacity }: ClaimRequest,
  prefix: string,
  { path, zxid }: WrittenNode,
): MadeNode {
  const name = path.slice(prefix.lastIndexOf('/') + 1)
  const sequence = Number(path.slice(prefix.length))
  const claim = { name, id: format.idInName(id), permits, capacity, sequence, fence: null }
  return { path, claim, zxid }
}

/**
 * Removes a claim's node; null: it was gone. With `isAnnounced`, its watchers learn that the claim
 * held everything and released it, and that nothing took its place.
 */
export async function removeNode(
  { batch }: ZooKeeperSpace,
  { path, claim, owner }: OwnNode,
  isAnnounced: boolean,
): Promise<Departure | null> {
  const before: MultiOperation[] | undefined = isAnnounced ? [{ type: 'set', path, data: '' }] : undefined
  try {
    const { zxid } = await batch.write({ type: 'delete', path }, owner.resource, before)
    return { sequence: claim.sequence, zxid }
  } catch (error) {
    return nullIfNone(error)
  }
}

/**
 * Removes the nodes of `others` and makes one for `claim`, in one transaction; its number. null:
 * one of the others was gone, or the line's node has another version than `version`.
 */
export function replaceNodes(
  { session }: ZooKeeperSpace,
  line: string,
  others: readonly ClaimName[],
  { name, fence }: ClaimName,
  data: string,
  version?: number,
): Promise<bigint | null> {
  const operations: MultiOperation[] = [
    ...others.map((other) => ({ type: 'delete', path: `${line}/${other.name}` }) as const),
    { type: 'create', path: `${line}/${name}`, mode: 'ephemeral', data, acl: session.acl },
  ]
  // Claims that joined before this transaction, and are granted after it, need a later fence than
  // their own.
  if (fence === null) operations.push({ type: 'set', path: line, data: '', version })
  return transaction(session.zk.multi(operations)).catch((error) => {
    if (hasCode(error, 'BAD_VERSION')) return null
    throw error
  })
}

/**
 * A transaction whose fences are above all that the line has given so far. null: the claim's node
 * is gone.
 */
export function touchLine(
  { session }: ZooKeeperSpace,
  line: string,
  { path }: OwnNode,
): Promise<bigint | null> {
  return transaction(
    session.zk.multi([
      { type: 'check', path },
      { type: 'set', path: line, data: '' },
    ]),
  )
}

/**
 * Finds the node of an attempt whose answer was lost. Other attempts under the same id have nodes
 * of their own.
 */
export async function findNode(
  space: ZooKeeperSpace,
  { resource, id }: ClaimRequest,
  attempt: number,
): Promise<MadeNode | null> {
  const { session, format } = space
  const linePath = space.lineOf(resource)
  // Once this is answered, what was sent before the connection broke is either done or refused for
  // good.
  await session.zk.sync(linePath).catch(nullIfNone)
  const line = await space.list(resource)
  for (const claim of line.claims.filter((each) => each.id === format.idInName(id))) {
    const path = `${linePath}/${claim.name}`
    const node = await session.zk.getData(path).catch(nullIfNone)
    // The node of an earlier session of ours ends with that session, and the hold would end with
    // it.
    const isOurs = node?.stat.ephemeralOwner === session.id && readData(node.data).attempt === attempt
    if (isOurs) return { path, claim, zxid: node.stat.czxid }
  }
  return null
}

/**
 * Watches a node; null: there is none. Then no watch is left behind, as `exists` would do: nodes of
 * claims never come back.
 */
export function watchNode(zk: ZooKeeperClient, path: string, watch: WatchListener): Promise<Stat | null> {
  return zk.getData(path, { watch }).then(({ stat }) => stat, nullIfNone)
}

function nullIfNone(error: unknown): null {
  if (hasCode(error, 'NO_NODE')) return null
  throw error
}

function transaction(writing: Promise<{ zxid: bigint }>): Promise<bigint | null> {
  return writing.then(({ zxid }) => zxid, nullIfNone)
}
