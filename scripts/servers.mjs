// The servers and tools that the tests use: which Debian package brings each, which program proves
// that it is there, and how to bring in what is missing. The tests ask this list, too, so that what
// is installed and what is skipped cannot drift apart.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'

/**
 * @type {Record<string, { packages: string[], programs: string[], url?: { variable: string,
 * example: string } }>}
 */
export const SERVERS = {
  redis: {
    packages: ['redis-server'],
    programs: ['redis-server', 'redis-cli'],
    url: { variable: 'HOLDFAST_TEST_REDIS_URL', example: 'redis://127.0.0.1:6379' },
  },
  postgres: {
    packages: ['postgresql'],
    programs: ['postgres', 'initdb', 'psql'],
    url: { variable: 'HOLDFAST_TEST_POSTGRES_URL', example: 'postgres://postgres@127.0.0.1:5432/postgres' },
  },
  pgbouncer: { packages: ['pgbouncer'], programs: ['pgbouncer'] },
  mariadb: {
    packages: ['mariadb-server'],
    programs: ['mariadbd', 'mariadb-install-db', 'mariadb'],
    url: { variable: 'HOLDFAST_TEST_MYSQL_URL', example: 'mysql://root@127.0.0.1:3306/test' },
  },
  zookeeper: {
    // With the libraries of others that can share a line with ours.
    packages: ['zookeeper', 'python3-kazoo', 'libcurator-recipes-java'],
    programs: ['java', '/usr/share/java/zookeeper.jar'],
  },
  etcd: { packages: ['etcd-server', 'etcd-client'], programs: ['etcd', 'etcdctl'] },
  memcached: { packages: ['memcached'], programs: ['memcached'] },
  iptables: { packages: ['iptables'], programs: ['iptables'] },
  // The terminal in which `holdfast top` is tested.
  tmux: { packages: ['tmux'], programs: ['tmux'] },
  // The browser in which the dashboard is tested.
  chromium: { packages: ['chromium'], programs: ['chromium'] },
  // Reads the metrics, and evaluates the panels of the Grafana dashboard.
  prometheus: { packages: ['prometheus'], programs: ['prometheus'] },
}

const FOLDERS = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin', ...postgresFolders()]
const POLICY = '/usr/sbin/policy-rc.d'
const OUR_POLICY =
  '#!/bin/sh\n# Of the Holdfast tests, while they install servers: do not start them.\nexit 101\n'

/** null: all its programs are here. Otherwise what is missing. */
export function missing(name) {
  const absent = SERVERS[name].programs.filter((program) => find(program) === null)
  return absent.length === 0 ? null : `${absent.join(' and ')} not installed`
}

/**
 * Installs what is missing, where that is possible. Returns what is missing still, each with the
 * reason why it was not installed.
 */
export async function ensureServers() {
  const absent = Object.keys(SERVERS).filter((name) => missing(name) && !givenUrl(name))
  if (absent.length === 0) return stillMissing('a running one was given')
  const obstacle = obstacleToInstalling()
  if (obstacle) return stillMissing(obstacle)
  const packages = absent.flatMap((name) => SERVERS[name].packages)
  console.log(`Installing ${packages.join(', ')} for the tests, once …`)
  const complaint = await withoutStartingServices(() => install(packages))
  return stillMissing(complaint)
}

function stillMissing(why) {
  return Object.keys(SERVERS)
    .filter(missing)
    .map((name) => ({ name, reason: missing(name), explanation: explain(name, why) }))
}

function explain(name, why) {
  const { packages, url } = SERVERS[name]
  const lines = [`${missing(name)} (${why})`, `  To run them: apt-get install ${packages.join(' ')}`]
  if (url && !givenUrl(name))
    lines.push(`  To run a part of them on a running server: ${url.variable}=${url.example} npm test`)
  return lines.join('\n')
}

function givenUrl(name) {
  const variable = SERVERS[name].url?.variable
  return variable === undefined ? undefined : process.env[variable]
}

function obstacleToInstalling() {
  if (process.env['HOLDFAST_TEST_INSTALL'] === 'no') return 'HOLDFAST_TEST_INSTALL is no'
  if (find('apt-get') === null) return 'there is no apt-get'
  if (process.getuid?.() !== 0) return 'installing needs root'
  return null
}

/**
 * Returns what apt-get complained about, if anything. Package lists may be absent or old: then they
 * are fetched, and it tries again.
 */
function install(packages) {
  const all = ['install', '-y', '-q', '--no-install-recommends', ...packages]
  if (aptGet(all) === null) return 'installed, but not found'
  aptGet(['update', '-q'])
  return aptGet(all) ?? 'installed, but not found'
}

function aptGet(args) {
  const patience = ['-o', 'DPkg::Lock::Timeout=120', '-o', 'Acquire::http::Timeout=20']
  const { status, error, stderr } = spawnSync('apt-get', [...patience, ...args], {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    stdio: ['ignore', 'ignore', 'pipe'],
    encoding: 'utf8',
    timeout: 300_000,
  })
  if (status === 0) return null
  const errors = (stderr ?? '').split('\n').filter((line) => line.startsWith('E: '))
  return errors.at(-1) ?? error?.message ?? `apt-get ended with ${status}`
}

/**
 * Debian starts a server when it is installed; the tests start their own. Leaves a policy that was
 * there as it was.
 */
async function withoutStartingServices(work) {
  const isOurs = !existsSync(POLICY) || readFileSync(POLICY, 'utf8') === OUR_POLICY
  // apt-get hears of an interruption, too, and ends. Without a listener it would end us before the
  // clean-up.
  const leave = () => process.exit(130)
  process.on('SIGINT', leave).on('SIGTERM', leave)
  try {
    if (isOurs) writeFileSync(POLICY, OUR_POLICY, { mode: 0o755 })
    return work()
  } finally {
    if (isOurs) rmSync(POLICY, { force: true })
    await new Promise((resolve) => setImmediate(resolve))
    process.off('SIGINT', leave).off('SIGTERM', leave)
  }
}

/** Where a program is, or null; some are not on the PATH of an ordinary user. */
export function find(program) {
  const paths = isAbsolute(program) ? [program] : FOLDERS.map((folder) => join(folder, program))
  return paths.find((path) => existsSync(path)) ?? null
}

/** Debian keeps each version's programs in a folder of its own; the newest first. */
function postgresFolders() {
  const versions = '/usr/lib/postgresql'
  if (!existsSync(versions)) return []
  const newestFirst = readdirSync(versions).sort((a, b) => Number(b) - Number(a))
  return newestFirst.map((version) => join(versions, version, 'bin'))
}
