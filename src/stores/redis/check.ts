import type { Env } from '../../base/env.js'
import type { ClaimRequest, Connection, Finding } from '../../contract/store.js'
import type { Master } from './driver.js'
import { isForbidden } from './failures.js'
import { configOf, infoOf } from './server-info.js'

/** The scripts write after they have read the time, which older servers refuse. */
const OLDEST: readonly [major: number, minor: number] = [6, 2]
/** More than a round trip takes, and less than does harm. */
const CLOCK_TOLERANCE_MS = 1000

/** What `locks.check()` says of one master. */
export async function checkMaster(master: Master, wantedReplicas: number, env: Env): Promise<Finding[]> {
  const info = await infoOf(master)
  const findings = [
    checkVersion(info),
    checkRole(info),
    checkEviction(info),
    checkPersistence(info, await configOf(master, 'appendfsync')),
    checkReplicas(info, wantedReplicas),
    await checkClock(master, env),
    ...(await checkScan(master)),
  ]
  return master.name === null
    ? findings
    : findings.map((finding) => ({ ...finding, about: `${finding.about} of ${master.name}` }))
}

function checkVersion(info: ReadonlyMap<string, string>): Finding {
  const about = 'version'
  // Valkey also reports the version of Redis that it is compatible with.
  const version = info.get('redis_version') ?? '0'
  const name = info.has('valkey_version') ? `Valkey ${info.get('valkey_version')}` : `Redis ${version}`
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]))
    return { level: 'fine', about, text: `${name}.` }
  return { level: 'fault', about, text: `${name} is too old; Holdfast needs Redis 6.2 or later.` }
}

function checkRole(info: ReadonlyMap<string, string>): Finding {
  const about = 'role'
  if (info.get('role') === 'master') return { level: 'fine', about, text: 'This server is a master.' }
  const text =
    'This server is a replica, which takes no writes; connect to the master, or by way of Sentinel or Cluster.'
  return { level: 'fault', about, text }
}

function checkEviction(info: ReadonlyMap<string, string>): Finding {
  const about = 'eviction'
  const policy = info.get('maxmemory_policy')
  if (Number(info.get('maxmemory') ?? 0) === 0)
    return { level: 'fine', about, text: 'There is no maxmemory, so nothing is evicted.' }
  if (policy === 'noeviction') return { level: 'fine', about, text: 'Nothing is evicted (noeviction).' }
  const text = `With maxmemory-policy ${policy} a lock that is held can be evicted, and granted again; set noeviction, or give Holdfast a server of its own.`
  return { level: 'risk', about, text }
}

function checkPersistence(info: ReadonlyMap<string, string>, appendfsync: string | null): Finding {
  const about = 'persistence'
  if (info.get('aof_enabled') !== '1') {
    const text =
      'There is no append-only file: a restart forgets who holds what, and another client may hold a lock until the old holder learns of it. Set appendonly yes and appendfsync always.'
    return { level: 'risk', about, text }
  }
  if (appendfsync === 'always')
    return {
      level: 'fine',
      about,
      text: 'Every write is on disk before it is answered (appendfsync always).',
    }
  const setting = appendfsync === null ? 'appendfsync could not be read' : `appendfsync is ${appendfsync}`
  const text = `${setting}: a crash of the machine may forget the grants of the last second. Set appendfsync always if that matters.`
  return { level: 'risk', about, text }
}

function checkReplicas(info: ReadonlyMap<string, string>, wanted: number): Finding {
  const about = 'replicas'
  const count = Number(info.get('connected_slaves') ?? 0)
  if (wanted > count) {
    const text = `Grants wait for ${wanted} replicas, but ${count} are connected: nothing will be granted. Start more, or lower the option replicas.`
    return { level: 'fault', about, text }
  }
  if (wanted > 0)
    return { level: 'fine', about, text: `${count} are connected, and grants wait for ${wanted}.` }
  if (count === 0)
    return { level: 'fine', about, text: 'There are none, so there is no failover that could lose a grant.' }
  const text = `${count} are connected, and a failover may lose the latest grants; with the option replicas: 1, grants wait for one of them.`
  return { level: 'risk', about, text }
}

async function checkClock(master: Master, env: Env): Promise<Finding> {
  const about = 'clock'
  const before = env.wallMs()
  const [seconds, micros] = (await master.command('TIME')) as [unknown, unknown]
  const after = env.wallMs()
  const serverMs = Number(seconds) * 1000 + Number(micros) / 1000
  const apartMs = Math.max(0, before - serverMs, serverMs - after)
  if (apartMs < CLOCK_TOLERANCE_MS)
    return { level: 'fine', about, text: "The server's clock agrees with this machine's." }
  const text = `The server's clock is ${Math.round(apartMs / 1000)} s apart from this machine's. This does not affect leases, but a jump of that clock does, and fences after a failover depend on it: run NTP on both.`
  return { level: 'risk', about, text }
}

/** Some servers and proxies that speak the protocol of Redis have no SCAN, or not for all keys. */
async function checkScan(master: Master): Promise<Finding[]> {
  try {
    await master.command('SCAN', '0', 'COUNT', '1')
    return []
  } catch (error) {
    const text = `Locks work, but cannot be listed: SCAN is refused (${error instanceof Error ? error.message : error}).`
    return [{ level: 'risk', about: 'listing', text }]
  }
}

/** More than a message takes, also on a busy machine. */
const MESSAGE_PATIENCE_MS = 5000

/** After `tryLock`: whether the client heard of the hold that was revoked. */
export async function messageFinding(heard: Promise<void>, env: Env): Promise<Finding> {
  const about = 'messages'
  const isHeard = await new Promise<boolean>((resolve) => {
    const cancel = env.timer(MESSAGE_PATIENCE_MS, () => resolve(false), { keepAlive: false })
    void heard.then(cancel).then(() => resolve(true))
  })
  if (isHeard) return { level: 'fine', about, text: 'Messages from scripts arrive.' }
  const text = `A message from a script (PUBLISH) did not arrive within ${MESSAGE_PATIENCE_MS / 1000} s. Locks work, but waiters learn late that it is their turn: use a server or proxy that passes messages on.`
  return { level: 'risk', about, text }
}

/** `failure` is the result of `tryLock`. */
export function permissionFinding(failure: unknown): Finding {
  const about = 'permissions'
  if (failure === null)
    return { level: 'fine', about, text: 'All commands that Holdfast needs are permitted.' }
  const message = failure instanceof Error ? failure.message : String(failure)
  const cause = failure instanceof Error && failure.cause instanceof Error ? failure.cause.message : message
  const text = isForbidden(cause)
    ? `${cause}. Holdfast needs the commands that docs/stores/redis.md lists, on its keys and channels.`
    : `A lock could not be taken and given back: ${message}`
  return { level: 'fault', about, text }
}

/**
 * Takes a lock, waits for it and releases it: everything that needs a permission. null: it worked.
 */
export async function tryLock(connection: Connection, name: string): Promise<unknown> {
  const { resource, claims, refused } = trial(name)
  try {
    for (const claim of claims) await connection.claim(claim)
    await Promise.all(refused.map((claim) => connection.claim(claim)))
    await connection.pulse(claims)
    // An eviction publishes a loss and a grant; a release tells its own client by its answer.
    await connection.evict(resource, null)
    for (const { id } of claims) await connection.release(resource, id)
    await connection.read(resource, true)
    return null
  } catch (error) {
    return error
  }
}

/**
 * A claim that holds, one that waits for it, and two that find too many waiting, of a resource that
 * nobody else uses. A second refusal in one batch needs other commands than the first.
 */
function trial(name: string): { resource: string; claims: ClaimRequest[]; refused: ClaimRequest[] } {
  const resource = `holdfast doctor ${name}`
  // Long enough for a slow server: a lapsed claim publishes nothing, so the permission for it would
  // not be tried.
  const common = { resource, permits: 1, capacity: 1, leaseMs: 30_000, presenceMs: 30_000, maxHoldMs: null }
  const rest = { mode: 'queue' as const, floor: 0, block: 1, info: '{}' }
  const claimOf = (id: string): ClaimRequest => ({ ...common, id: `${name}:${id}`, ...rest })
  const refused = ['third', 'fourth'].map((id) => ({ ...claimOf(id), maxWaiters: 1 }))
  return { resource, claims: ['first', 'second'].map(claimOf), refused }
}
