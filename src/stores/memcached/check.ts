import type { Env } from '../../base/env.js'
import type { Finding } from '../../contract/store.js'
import type { MemcachedStats } from '../../drivers/memcached/index.js'
import { checkClock } from '../shared/clock-check.js'
import { explain } from './failures.js'
import type { MemcachedNode } from './node.js'

/** Above this part of its memory, a server is about to evict. */
const NEARLY_FULL = 0.9
/** The server tells whole seconds, up to one ahead of its clock and three behind. */
const TIME_STEP_MS = 2000

/** What `locks.check()` says of one server. */
export async function checkNode(
  { server }: MemcachedNode,
  env: Env,
  isOneOfMany: boolean,
): Promise<Finding[]> {
  const beforeMs = env.wallMs()
  const [stats, settings] = await Promise.all([server.stats(), server.stats('settings')]).catch(
    (error: unknown) => {
      throw explain(error)
    },
  )
  const afterMs = env.wallMs()
  const findings = [
    checkVersion(stats.get('version') ?? ''),
    checkCas(settings),
    ...checkMemory(stats, settings.get('evictions') !== 'off'),
    checkListing(settings),
    checkClock(
      Number(stats.get('time')) * 1000 + TIME_STEP_MS / 2,
      beforeMs - TIME_STEP_MS,
      afterMs + TIME_STEP_MS,
      CLOCK_COUNTS,
    ),
    RESTART,
  ]
  if (!isOneOfMany) return findings
  return findings.map((finding) => ({ ...finding, text: `${server.name}: ${finding.text}` }))
}

const CLOCK_COUNTS =
  'Leases depend on it: clients believe their own clocks only near that of the server, and otherwise agree to within two seconds only. Run NTP on both, and restart memcached if its machine was suspended: until then it tells a wrong time.'

const RESTART: Finding = {
  level: 'risk',
  about: 'restart',
  text: 'A restart of memcached forgets every lock: use this store to save work, and another one, or fences, where two holders would do harm.',
}

/** With 1.6.10, `ms` takes the length of its value as it does today. */
export function checkVersion(version: string): Finding {
  const about = 'version'
  const [major = 0, minor = 0, patch = 0] = version.split('.').map((part) => Number.parseInt(part, 10))
  const isNew = major > 1 || (major === 1 && (minor > 6 || (minor === 6 && patch >= 10)))
  if (isNew) return { level: 'fine', about, text: `memcached ${version}.` }
  return { level: 'fault', about, text: `memcached ${version} is too old; Holdfast needs 1.6.10 or later.` }
}

function checkCas(settings: MemcachedStats): Finding {
  const about = 'cas'
  if (settings.get('cas_enabled') !== 'no')
    return { level: 'fine', about, text: 'Items have CAS numbers, by which they are changed.' }
  const text = 'Items have no CAS numbers, so no lock can be taken: start the server without -C.'
  return { level: 'fault', about, text }
}

function checkMemory(stats: MemcachedStats, evicts: boolean): Finding[] {
  const count = (name: string): number => Number(stats.get(name) ?? 0)
  const part = count('bytes') / Math.max(1, count('limit_maxbytes'))
  const used = `${Math.round(part * 100)} % of ${Math.round(count('limit_maxbytes') / 2 ** 20)} MiB are in use`
  const memory: Finding =
    part < NEARLY_FULL
      ? { level: 'fine', about: 'memory', text: `${used}.` }
      : {
          level: 'risk',
          about: 'memory',
          text: `${used}: give the server more memory (-m), or the locks a server of their own.`,
        }
  return [memory, checkEviction(count('evictions'), count('store_no_memory'), evicts)]
}

function checkEviction(evictions: number, refusals: number, evicts: boolean): Finding {
  const about = 'eviction'
  if (evictions > 0) {
    const text = `The server has evicted ${evictions} items since it started. A lock that is evicted is lost while its holder works: give the server more memory (-m), or the locks a server of their own.`
    return { level: 'fault', about, text }
  }
  if (refusals > 0) {
    const text = `The server has refused ${refusals} writes since it started, because its memory is full. Each one has lost its line: give the server more memory (-m).`
    return { level: 'fault', about, text }
  }
  if (evicts) return { level: 'risk', about, text: EVICTS }
  return {
    level: 'fine',
    about,
    text: 'Nothing is evicted (-M): a full server refuses writes, and the doctor counts them.',
  }
}

const EVICTS =
  'None so far, but a full server evicts any item, also a lock that is held. Keep an eye on the counter evictions, or give the locks a server of their own, with -M.'

function checkListing(settings: MemcachedStats): Finding {
  const about = 'listing'
  const isOn = settings.get('lru_crawler') === 'yes' && settings.get('dump_enabled') !== 'no'
  if (isOn) return { level: 'fine', about, text: 'Locks and states can be listed.' }
  const text = 'Locks work, but cannot be listed: the server is started without its LRU crawler, or with -X.'
  return { level: 'risk', about, text }
}
