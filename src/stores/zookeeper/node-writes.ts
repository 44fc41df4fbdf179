import type { ClaimRequest } from '../../contract/store.js'
import type { MultiOperation, Stat, WatchListener, ZooKeeperClient } from '../../drivers/zookeeper/index.js'
import type { Departure } from './emptied.js'
import { hasCode } from './failures.js'
import type { ClaimName } from './names.js'
import type { MadeNode, OwnNode } from './own-nodes.js'
import { readData, type ZooKeeperSpace } from './space.js'

/** Makes a node at the end of the line. */
export async function createNode(
  { session, format, batch }: ZooKeeperSpace,
  line: string,
  request: ClaimRequest,
  data: string,
): Promise<MadeNode> {
  const path = `${line}/${format.prefix(request)}`
  const made = await batch.write(
    { type: 'create', path, mode: 'ephemeralSequential', data, acl: session.acl },
    line,
  )
  const claim: ClaimName = {
    name: made.path.slice(line.length + 1),
    id: format.idInName(request.id),
    permits: request.permits,
    capacity: request.capacity,
    sequence: Number(made.path.slice(path.length)),
    fence: null,
  }
  return { claim, zxid: made.zxid }
}

/**
 * Removes a claim's node; null: it was gone. With `isAnnounced`, its watchers learn that the claim held everything and
 * released it, and that nothing took its place.
 */
export async function removeNode(
  { batch }: ZooKeeperSpace,
  { path, line, claim }: OwnNode,
  isAnnounced: boolean,
): Promise<Departure | null> {
  const before: MultiOperation[] = isAnnounced ? [{ type: 'set', path, data: '' }] : NOTHING
  try {
    const { zxid } = await batch.write({ type: 'delete', path }, line, before)
    return { sequence: claim.sequence, zxid }
  } catch (error) {
    return nullIfNone(error)
  }
}

const NOTHING: MultiOperation[] = []

/**
 * Removes the nodes of `others` and makes one for `claim`, in one transaction; its number. null: one of the others was
 * gone.
 */
export function replaceNodes(
  { session }: ZooKeeperSpace,
  line: string,
  others: readonly ClaimName[],
  { name, fence }: ClaimName,
  data: string,
): Promise<bigint | null> {
  const operations: MultiOperation[] = [
    ...others.map((other) => ({ type: 'delete', path: `${line}/${other.name}` }) as const),
    { type: 'create', path: `${line}/${name}`, mode: 'ephemeral', data, acl: session.acl },
  ]
  // Claims that joined before this transaction, and are granted after it, need a later fence than their own.
  if (fence === null) operations.push({ type: 'set', path: line, data: '' })
  return transaction(session.zk.multi(operations))
}

/** A transaction whose fences are above all that the line has given so far. null: the claim's node is gone. */
export function touchLine({ session }: ZooKeeperSpace, { path, line }: OwnNode): Promise<bigint | null> {
  return transaction(
    session.zk.multi([
      { type: 'check', path },
      { type: 'set', path: line, data: '' },
    ]),
  )
}

/** Finds the node of an attempt whose answer was lost. Other attempts under the same id have nodes of their own. */
export async function findNode(
  space: ZooKeeperSpace,
  { resource, id }: ClaimRequest,
  attempt: number,
): Promise<MadeNode | null> {
  const { session, format } = space
  const path = space.lineOf(resource)
  // Once this is answered, what was sent before the connection broke is either done or refused for good.
  await session.zk.sync(path).catch(nullIfNone)
  const line = await space.list(resource)
  for (const claim of line.claims.filter((each) => each.id === format.idInName(id))) {
    const node = await session.zk.getData(`${path}/${claim.name}`).catch(nullIfNone)
    // The node of an earlier session of ours ends with that session, and the hold would end with it.
    const isOurs = node?.stat.ephemeralOwner === session.id && readData(node.data).attempt === attempt
    if (isOurs) return { claim, zxid: node.stat.czxid }
  }
  return null
}

/**
 * Watches a node; null: there is none. Then no watch is left behind, as `exists` would do: nodes of claims never come
 * back.
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
