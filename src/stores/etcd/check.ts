import type { Env } from '../../base/env.js'
import { EXCLUSIVE } from '../../contract/constants.js'
import type { ClaimRequest, Connection, Finding } from '../../contract/store.js'
import type { ClusterMember, ServerStatus } from '../../drivers/etcd/index.js'
import type { EtcdSpace } from './space.js'

const READS = 5
/** A hand-off is one write, and holders wait for it. */
const SLOW_MS = 100
const OLDEST = [3, 4] as const

const fine = (about: string, text: string): Finding => ({ level: 'fine', about, text })
const risk = (about: string, text: string): Finding => ({ level: 'risk', about, text })
const fault = (about: string, text: string): Finding => ({ level: 'fault', about, text })

/** What `locks.check()` finds out about the servers. */
export async function checkEtcd(space: EtcdSpace, connection: Connection): Promise<Finding[]> {
  const { client, env, session } = space
  const status = await client.status()
  const members = await client.members().catch(() => null)
  const failure = await tryLock(connection, `holdfast-doctor-${env.id()}`)
  return [
    checkVersion(status),
    ...checkMembers(members, client.hostCount),
    checkAlarms(status),
    checkLease(session.lease.ttlMs, space.askedTtlMs),
    await checkLatency(space, env),
    failure === null
      ? fine('permissions', 'Everything that Holdfast needs is permitted.')
      : fault('permissions', `A lock could not be taken and given back: ${messageOf(failure)}`),
  ]
}

function checkVersion({ version }: ServerStatus): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const isNew = major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])
  if (isNew) return fine('version', `etcd ${version}.`)
  return fault('version', `etcd ${version} is too old: use ${OLDEST.join('.')} or later.`)
}

function checkMembers(members: readonly ClusterMember[] | null, named: number): Finding[] {
  const about = 'cluster'
  if (members === null) return [risk(about, 'The list of its members cannot be read.')]
  const count = members.filter(({ isLearner }) => !isLearner).length
  const spare = Math.ceil(count / 2) - 1
  const text = `${count} servers vote; ${spare} of them may fail.`
  const size =
    count === 1
      ? risk(about, 'One server by itself: while it is down nothing is granted. Run three, or five.')
      : count % 2 === 0
        ? risk(about, `${text} One fewer would do as well, with one less to fail: run an odd number.`)
        : fine(about, text)
  if (named >= count) return [size, fine('address', `It names ${named} servers.`)]
  const few = `It names ${named} of the ${count} servers: when these are down, the others are not found. Name all of them.`
  return [size, risk('address', few)]
}

function checkAlarms({ errors, dbBytes }: ServerStatus): Finding {
  const size = `The database has ${Math.round(dbBytes / 1e6)} MB.`
  if (errors.length === 0) return fine('alarms', `None. ${size}`)
  const text = `The server reports: ${errors.join('; ')}. ${size} Without space nothing can be locked: compact, defragment, and disarm the alarm.`
  return fault('alarms', text)
}

function checkLease(ttlMs: number, askedMs: number): Finding {
  if (ttlMs <= Math.ceil(askedMs / 1000) * 1000)
    return fine('lease', `It lives for ${ttlMs} ms after the last renewal.`)
  const text = `${askedMs} ms were asked for, but the servers allow no less than ${ttlMs} ms: a dead process keeps its holds for that long. Lower their --election-timeout, or raise ttl.`
  return risk('lease', text)
}

async function checkLatency({ client, names }: EtcdSpace, env: Env): Promise<Finding> {
  const times: number[] = []
  for (let read = 0; read < READS; read++) {
    const before = env.now()
    await client.get(names.states)
    times.push(env.now() - before)
  }
  const ms = times.sort((one, other) => one - other)[Math.floor(READS / 2)] ?? 0
  const text = `A majority answers in ${ms.toFixed(1)} ms.`
  if (ms < SLOW_MS) return fine('latency', text)
  return risk('latency', `${text} That is slow for locks: give the servers a fast disk of their own.`)
}

/**
 * Does everything that needs a permission, with a lock of its own; the error. null: it went well.
 */
async function tryLock(connection: Connection, resource: string): Promise<unknown> {
  const times = { leaseMs: 30_000, presenceMs: 30_000 }
  const rest = { maxHoldMs: null, mode: 'queue', floor: 0, block: 1, info: '' } as const
  const claims = ['first', 'second'].map((name): ClaimRequest => {
    const id = `${resource} ${name}`
    return { resource, id, permits: EXCLUSIVE, capacity: EXCLUSIVE, ...times, ...rest }
  })
  try {
    for (const claim of claims) await connection.claim(claim)
    await connection.pulse(claims.map(({ id }) => ({ resource, id, ...times })))
    for (const { id } of claims) await connection.release(resource, id)
    const { current } = await connection.write({ key: resource, expect: null, value: '', retentionMs: null })
    await connection.write({
      key: resource,
      expect: current?.version ?? null,
      value: null,
      retentionMs: null,
    })
    return null
  } catch (error) {
    return error
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
