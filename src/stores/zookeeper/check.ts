import type { Env } from '../../base/env.js'
import { EXCLUSIVE } from '../../contract/constants.js'
import type { ClaimRequest, Connection, Finding } from '../../contract/store.js'
import { Perms, type ZooKeeperClient } from '../../drivers/zookeeper/index.js'
import { hasCode } from './failures.js'
import type { SharedSession } from './session.js'
import type { ZooKeeperSpace } from './space.js'

/** The list of members, from version 3.5 on. A single server keeps nothing there. */
const CONFIG_PATH = '/zookeeper/config'
const WRITES = 5
/** A hand-off is one write, and holders wait for it. */
const SLOW_MS = 100
/** A sign of life reaches the leader up to a tick late: a shorter session is hardly ever valid. */
const LEAST_TICKS = 2

const fine = (about: string, text: string): Finding => ({ level: 'fine', about, text })
const risk = (about: string, text: string): Finding => ({ level: 'risk', about, text })
const fault = (about: string, text: string): Finding => ({ level: 'fault', about, text })

/** What `locks.check()` finds out about the servers. */
export async function checkServers(session: SharedSession, env: Env): Promise<Finding[]> {
  const latency = await checkLatency(session, env)
  const members = await session.withOwnSession(readMembers)
  return [...checkEnsemble(members, session.asked.hostCount), checkSession(session), latency]
}

/** The members that vote; null: the list cannot be read. Empty: a single server. */
async function readMembers(zk: ZooKeeperClient): Promise<string[] | null> {
  try {
    const text = String((await zk.getData(CONFIG_PATH)).data)
    return text.split('\n').filter((line) => line.startsWith('server.') && !line.includes(':observer'))
  } catch (error) {
    if (hasCode(error, 'NO_NODE') || hasCode(error, 'NO_AUTH')) return null
    throw error
  }
}

function checkEnsemble(members: readonly string[] | null, named: number): Finding[] {
  const about = 'ensemble'
  if (members === null) return [risk(about, `${CONFIG_PATH} cannot be read, so its members are not known.`)]
  const count = members.length
  if (count === 0)
    return [risk(about, 'One server by itself: while it is down nothing is granted. Run three, or five.')]
  const spare = Math.ceil(count / 2) - 1
  const text = `${count} servers vote; ${spare} of them may fail.`
  const size =
    count % 2 === 0
      ? risk(about, `${text} One fewer would do as well, with one less to fail: run an odd number.`)
      : fine(about, text)
  if (named >= count) return [size, fine('address', `It names ${named} servers.`)]
  const few = `It names ${named} of the ${count} servers: when these are down, the others are not found. Name all of them.`
  return [size, risk('address', few)]
}

function checkSession({ timeoutMs, asked }: SharedSession): Finding {
  const about = 'session'
  const { tickMs, timeoutMs: askedMs } = asked
  if (timeoutMs < LEAST_TICKS * tickMs)
    return fault(
      about,
      `It lives for ${timeoutMs} ms, less than ${LEAST_TICKS} ticks of ${tickMs} ms, so holds are hardly ever valid. Give the servers' tickTime as the option tick, or a longer sessionTimeout.`,
    )
  if (timeoutMs === askedMs) return fine(about, `It lives for ${timeoutMs} ms after the last sign of life.`)
  const bound = timeoutMs > askedMs ? 'minSessionTimeout' : 'maxSessionTimeout'
  return risk(
    about,
    `${askedMs} ms were asked for, but the servers allow ${timeoutMs} ms: a dead process keeps its holds for that long. Change sessionTimeout, or the servers' ${bound}.`,
  )
}

async function checkLatency(session: SharedSession, env: Env): Promise<Finding> {
  const about = 'latency'
  const times: number[] = []
  for (let write = 0; write < WRITES; write++) {
    const before = env.now()
    await session.confirm()
    times.push(env.now() - before)
  }
  const ms = times.sort((one, other) => one - other)[Math.floor(WRITES / 2)] ?? 0
  const text = `A majority answers a write in ${ms.toFixed(1)} ms.`
  if (ms < SLOW_MS) return fine(about, text)
  return risk(about, `${text} That is slow for locks: give the servers a disk of their own for their log.`)
}

/**
 * Does everything that needs a permission, with a lock of its own; the error. null: it went well.
 */
export async function tryLock(connection: Connection, resource: string, isOwn: boolean): Promise<unknown> {
  // Long enough for a slow server: the claims must not expire during the check.
  const times = { leaseMs: 30_000, presenceMs: 30_000 }
  const size = { permits: EXCLUSIVE, capacity: EXCLUSIVE }
  const rest = { mode: 'queue' as const, floor: 0, block: 1, info: '' }
  const claims = ['first', 'second'].map(
    (id): ClaimRequest => ({
      resource,
      id: `${resource} ${id}`,
      ...size,
      ...times,
      maxHoldMs: null,
      ...rest,
    }),
  )
  try {
    for (const claim of claims) await connection.claim(claim)
    await connection.pulse(claims.map(({ id }) => ({ resource, id, ...times })))
    if (isOwn) await connection.evict(resource, null)
    for (const { id } of claims) await connection.release(resource, id)
    const key = resource
    const { current } = await connection.write({ key, expect: null, value: '', retentionMs: null })
    await connection.read(key, true)
    await connection.write({ key, expect: current?.version ?? null, value: null, retentionMs: null })
    return null
  } catch (error) {
    return error
  }
}

/** What `tryLock` has shown, and whether anyone may change the nodes of a line. */
export async function checkAccess(
  space: ZooKeeperSpace,
  resource: string,
  failure: unknown,
): Promise<Finding[]> {
  if (failure !== null) {
    const message = failure instanceof Error ? failure.message : String(failure)
    return [fault('permissions', `A lock could not be taken and given back: ${message}`)]
  }
  const { zk } = space.session
  const line = space.lineOf(resource)
  const open = await firstOpen(zk, line)
  await zk.delete(line).catch(() => {})
  return [
    fine('version', 'It has everything that Holdfast needs: transactions, and containers (3.5 or later).'),
    fine('permissions', 'Everything that Holdfast needs is permitted.'),
    open === null
      ? fine('access', 'Only users that the ACLs name can change locks.')
      : risk(
          'access',
          `Anyone who reaches the servers can change what is below ${open}, and so break locks. Set the options auth and acl, and the ACL of nodes that are there already.`,
        ),
  ]
}

/**
 * The topmost node on the path of the line below which anyone may make or remove nodes. The root is
 * left out.
 */
async function firstOpen(zk: ZooKeeperClient, line: string): Promise<string | null> {
  const names = line.split('/').slice(1)
  for (let depth = 1; depth <= names.length; depth++) {
    const path = `/${names.slice(0, depth).join('/')}`
    const { acl } = await zk.getAcl(path)
    const isOpen = acl.some(({ scheme, perms }) => scheme === 'world' && (perms & ~Perms.read) !== 0)
    if (isOpen) return path
  }
  return null
}
