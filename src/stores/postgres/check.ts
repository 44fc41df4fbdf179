import type { ClaimRequest, Connection, Finding } from '../../contract/store.js'
import { checkClock } from '../shared/clock-check.js'
import type { PostgresBackend } from './backend.js'

/** PostgreSQL 12 is the oldest whose routines and indexes do all that is used. */
const OLDEST = 120_000
/** Long enough that the claims of a trial do not lapse on a slow server. */
const TRIAL_MS = 30_000
const HEAR_WITHIN_MS = 3000
const LOOK_EVERY_MS = 50

interface Settings {
  readonly version: string
  readonly number: number
  readonly standby: boolean
  readonly readOnly: string
  readonly isolation: string
  readonly encoding: string
  readonly commit: string
  readonly fsync: string
  readonly pages: string
  readonly standbys: number
  readonly names: string
  readonly wallMs: number
  /** `max_connections`, how many of them are reserved, and how many are open. */
  readonly most: number
  readonly reserved: number
  readonly open: number
}

const SETTINGS = `SELECT json_build_object(
  'version', current_setting('server_version'), 'number', current_setting('server_version_num')::int,
  'standby', pg_is_in_recovery(), 'readOnly', current_setting('default_transaction_read_only'),
  'isolation', current_setting('default_transaction_isolation'), 'encoding', current_setting('server_encoding'),
  'commit', current_setting('synchronous_commit'), 'fsync', current_setting('fsync'), 'pages', current_setting('full_page_writes'),
  'standbys', (SELECT count(*) FROM pg_stat_replication), 'names', current_setting('synchronous_standby_names'),
  'most', current_setting('max_connections')::int, 'reserved', current_setting('superuser_reserved_connections')::int,
  'open', (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
  'wallMs', extract(epoch FROM clock_timestamp()) * 1000)::text`

/** What `locks.check()` says of the server. */
export async function checkServer(backend: PostgresBackend, connection: Connection): Promise<Finding[]> {
  const before = backend.env.wallMs()
  const settings: Settings = JSON.parse((await backend.runner.askServer(SETTINGS)) ?? '{}')
  const after = backend.env.wallMs()
  return [
    checkVersion(settings),
    checkRole(settings),
    checkDurability(settings),
    checkReplicas(settings),
    checkIsolation(settings),
    checkEncoding(settings),
    checkConnections(settings, backend.connections),
    checkClock(settings.wallMs, before, after),
    await checkRights(backend, connection),
    await checkMessages(backend),
  ]
}

function checkVersion({ version, number }: Settings): Finding {
  const about = 'version'
  if (number >= OLDEST) return { level: 'fine', about, text: `PostgreSQL ${version}.` }
  return { level: 'fault', about, text: `PostgreSQL ${version} is too old; Holdfast needs 12 or later.` }
}

function checkRole({ standby, readOnly }: Settings): Finding {
  const about = 'role'
  if (!standby && readOnly === 'off') return { level: 'fine', about, text: 'This server takes writes.' }
  const text = standby
    ? 'This server is a standby, which takes no writes; connect to the primary.'
    : 'Transactions are read-only here (default_transaction_read_only); set it off for the user of Holdfast.'
  return { level: 'fault', about, text }
}

function checkDurability({ fsync, commit, pages }: Settings): Finding {
  const about = 'durability'
  const off = [
    ...(fsync === 'on' ? [] : ['fsync']),
    ...(commit === 'off' ? ['synchronous_commit'] : []),
    ...(pages === 'on' ? [] : ['full_page_writes']),
  ]
  if (off.length === 0)
    return {
      level: 'fine',
      about,
      text: `A grant is on disk before it is answered (synchronous_commit ${commit}).`,
    }
  const text = `${off.join(' and ')} ${off.length === 1 ? 'is' : 'are'} off: a crash may forget grants, and another client may hold until their holders notice. Set ${off.join(', ')} on.`
  return { level: 'risk', about, text }
}

function checkReplicas({ standbys, names }: Settings): Finding {
  const about = 'replicas'
  if (standbys === 0)
    return {
      level: 'fine',
      about,
      text: 'None are connected, so there is no failover that could lose a grant.',
    }
  if (names !== '')
    return { level: 'fine', about, text: `${standbys} are connected; grants wait for ${names}.` }
  const text = `${standbys} are connected, and a failover may lose the latest grants; set synchronous_standby_names, so that grants wait for them.`
  return { level: 'risk', about, text }
}

function checkIsolation({ isolation }: Settings): Finding {
  const about = 'isolation'
  if (isolation === 'read committed')
    return { level: 'fine', about, text: 'Transactions are READ COMMITTED.' }
  const text = `default_transaction_isolation is ${isolation}: calls for a busy lock are undone and made again, which is slow. Set read committed for the user of Holdfast.`
  return { level: 'risk', about, text }
}

function checkEncoding({ encoding }: Settings): Finding {
  const about = 'encoding'
  if (encoding === 'UTF8') return { level: 'fine', about, text: 'The database is in UTF-8.' }
  const text = `The database is in ${encoding}: names with characters outside it are refused. Use a database in UTF-8.`
  return { level: 'risk', about, text }
}

/** Without a connection for messages a process works, but each hand-over takes longer. */
function checkConnections({ most, reserved, open }: Settings, needed: number): Finding {
  const about = 'connections'
  const room = Math.max(0, Math.floor((most - reserved - open) / needed))
  const count = `A process like this one opens up to ${needed}, of which one listens. max_connections is ${most}; ${reserved} are reserved and ${open} are open`
  if (room > 0) return { level: 'fine', about, text: `${count}, so ${room} more such processes have room.` }
  const text = `${count}: another such process could not open all of its own, and without the one that listens it is served late. Raise max_connections, make pools smaller (connections=2 is enough for one busy lock), or use a pooler and give listen the URL of the server itself.`
  return { level: 'risk', about, text }
}

/** Acquires, queues and releases: everything that needs a right. */
async function checkRights(backend: PostgresBackend, connection: Connection): Promise<Finding> {
  const about = 'rights'
  const { resource, claims } = trial(backend.env.id())
  try {
    for (const claim of claims) await connection.claim(claim)
    await connection.pulse(claims)
    for (const { id } of claims) await connection.release(resource, id)
    await connection.read(resource, true)
    await connection.write({ key: resource, expect: null, value: null, retentionMs: null })
    return { level: 'fine', about, text: 'The user may do everything that Holdfast does.' }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return { level: 'fault', about, text: `A lock could not be taken and given back: ${message}` }
  }
}

/** One claim that holds and one that waits for it, of a resource with a unique name. */
function trial(name: string): { resource: string; claims: ClaimRequest[] } {
  const resource = `holdfast doctor ${name}`
  const common = {
    resource,
    permits: 1,
    capacity: 1,
    leaseMs: TRIAL_MS,
    presenceMs: TRIAL_MS,
    maxHoldMs: null,
  }
  const rest = { mode: 'queue' as const, floor: 0, block: 1, info: '{}' }
  return { resource, claims: ['first', 'second'].map((id) => ({ ...common, id: `${name}:${id}`, ...rest })) }
}

async function checkMessages(backend: PostgresBackend): Promise<Finding> {
  const about = 'messages'
  if (!backend.mayListen)
    return {
      level: 'fine',
      about,
      text: 'Not listened for (listen: false); waiters poll, the next in line five times a second.',
    }
  const until = backend.env.now() + HEAR_WITHIN_MS
  while (!backend.isHearing && backend.env.now() < until)
    await new Promise<void>((resolve) => backend.env.timer(LOOK_EVERY_MS, resolve, { keepAlive: true }))
  if (backend.isHearing) return { level: 'fine', about, text: 'NOTIFY reaches this process.' }
  const text =
    'NOTIFY does not reach this process, as behind a pooler in transaction mode or with a pool of one connection: waiters poll instead, the next in line five times a second. Give the URL of the server itself as listen, or set listen: false.'
  return { level: 'risk', about, text }
}
