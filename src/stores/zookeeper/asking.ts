import type { ClaimRequest } from '../../contract/store.js'
import type { MultiOperation, Stat, WatchListener, ZooKeeperClient } from '../../drivers/zookeeper/index.js'
import { type Departure, isAlone } from './emptied.js'
import { hasCode } from './failures.js'
import type { Line } from './line.js'
import type { ClaimName } from './names.js'
import { type Places, readData } from './places.js'

/** Asked for so often when the line's node vanishes between being made and being used. */
const MOST_ATTEMPTS = 5

/** A claim's node, and the transaction that made it. */
export interface Made {
  readonly claim: ClaimName
  readonly zxid: bigint
}

/**
 * Puts a claim at the end of its line. `stand` is called as soon as it has its node. The line as it was then; null: nobody else was in it.
 */
export async function join(
  places: Places,
  line: string,
  request: ClaimRequest,
  data: string,
  stand: (made: Made) => void,
): Promise<Line | null> {
  const { entrances } = places
  const isOpen = places.isIn(line) && !entrances.isClosed(line)
  const entrance = isOpen ? null : entrances.close(line)
  if (entrance?.turn) await entrance.turn
  try {
    for (let attempt = 1; ; attempt++) {
      const left = places.emptied.take(request.resource)
      // Both at once: the server handles them in order, so the list has the node and everything before it.
      const creating = create(places, request, line, data)
      const listing = left ? null : places.list(request.resource)
      listing?.catch(() => {})
      if (places.isIn(line)) entrance?.open()
      try {
        const made = await creating
        stand(made)
        entrance?.open()
        if (left && isAlone(made.claim.sequence, made.zxid, left)) return null
        const listed = await (listing ?? places.list(request.resource))
        // A batch that was refused is sent again one by one: then the list was there before the node.
        return listed.find(made.claim.name) ? listed : await places.list(request.resource)
      } catch (error) {
        if (!hasCode(error, 'NO_NODE') || attempt === MOST_ATTEMPTS) throw error
        await places.session.makePath(line)
      }
    }
  } finally {
    entrance?.open()
  }
}

function create(places: Places, request: ClaimRequest, line: string, data: string): Promise<Made> {
  const { session, format, batch } = places
  const path = `${line}/${format.prefix(request)}`
  const [mode, { acl }] = ['ephemeralSequential' as const, session]
  const { permits, capacity } = request
  return batch.write({ type: 'create', path, mode, data, acl }, line).then((made) => {
    const claim: ClaimName = {
      name: made.path.slice(line.length + 1),
      id: format.idInName(request.id),
      permits,
      capacity,
      sequence: Number(made.path.slice(path.length)),
      fence: null,
    }
    return { claim, zxid: made.zxid }
  })
}

/** Takes a claim's node away. With `word`, those who watch it know that it held everything and has left. null: there is no such node. */
export function remove(
  { batch }: Places,
  line: string,
  { name, sequence }: ClaimName,
  word: boolean,
): Promise<Departure | null> {
  const path = `${line}/${name}`
  const first: MultiOperation[] = word ? [{ type: 'set', path, data: '' }] : []
  return batch
    .write({ type: 'delete', path }, line, first)
    .then(({ zxid }) => ({ sequence, zxid }), nullIfNone)
}

/** Puts a claim in the place of others, which leave in the same step; the transaction. null: they were not there any more. */
export async function replace(
  { session }: Places,
  line: string,
  others: readonly ClaimName[],
  { name, fence }: ClaimName,
  data: string,
): Promise<bigint | null> {
  const operations: MultiOperation[] = [
    ...others.map((other) => ({ type: 'delete', path: `${line}/${other.name}` }) as const),
    { type: 'create', path: `${line}/${name}`, mode: 'ephemeral', data, acl: session.acl },
  ]
  // Tells those who came before this transaction, and are granted after it, to take a later fence than their own.
  if (fence === null) operations.push({ type: 'set', path: line, data: '' })
  return transaction(session.write((zk) => zk.multi(operations)))
}

/** A transaction whose fences are above all that were given so far in the line. null: the claim is not there any more. */
export function touchLine({ session }: Places, line: string, { name }: ClaimName): Promise<bigint | null> {
  return transaction(
    session.write((zk) =>
      zk.multi([
        { type: 'check', path: `${line}/${name}` },
        { type: 'set', path: line, data: '' },
      ]),
    ),
  )
}

/** Looks for the node of an attempt whose answer was lost. An earlier or later attempt under the same id has a node of its own. */
export async function find(
  places: Places,
  { resource, id }: ClaimRequest,
  attempt: number,
): Promise<Made | null> {
  const { session, format } = places
  const path = places.lineOf(resource)
  // Whatever was on its way when the connection broke is through, or refused for good, when this is answered.
  await session.zk.sync(path).catch((error) => {
    if (!hasCode(error, 'NO_NODE')) throw error
  })
  const line = await places.list(resource)
  for (const claim of line.claims.filter((each) => each.id === format.idInName(id))) {
    const node = await session.zk.getData(`${path}/${claim.name}`).catch(nullIfNone)
    // A node of a session of ours that is about to end would take our hold with it.
    const isOurs = node?.stat.ephemeralOwner === session.id && readData(node.data).attempt === attempt
    if (isOurs) return { claim, zxid: node.stat.czxid }
  }
  return null
}

/** null: it is not there. Then nothing is watched either, unlike with `exists`: nodes of claims never come again. */
export function lookAt(zk: ZooKeeperClient, path: string, watch: WatchListener): Promise<Stat | null> {
  return zk.getData(path, { watch }).then(({ stat }) => stat, nullIfNone)
}

function nullIfNone(error: unknown): null {
  if (hasCode(error, 'NO_NODE')) return null
  throw error
}

function transaction(writing: Promise<{ zxid: bigint }>): Promise<bigint | null> {
  return writing.then(({ zxid }) => zxid, nullIfNone)
}
