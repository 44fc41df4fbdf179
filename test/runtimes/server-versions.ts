import { execFileSync } from 'node:child_process'
import { missingNewer, newerCommand, newerPostgres, newerProgram } from '../../scripts/newer-servers.mjs'
import { missingPeer, peerCommand } from '../../scripts/peers.mjs'
import { find } from '../../scripts/servers.mjs'
import { startEtcd } from '../servers/etcd.js'
import { startMariadb } from '../servers/mariadb.js'
import { startMemcached } from '../servers/memcached.js'
import { startPostgres } from '../servers/postgres.js'
import { startRedis } from '../servers/redis.js'
import type { StoreName } from './plan.js'

/** A server in one version. */
export interface ServerVersion {
  /** For people, without the version. */
  readonly name: string
  /** Where it comes from. */
  readonly from: string
  readonly store: StoreName
  /** null: it is here. Otherwise why not. */
  readonly missing: string | null
  /** Exactly. */
  version(): Promise<string>
  start(): Promise<{ readonly url: string; stop(): Promise<unknown> }>
}

type Command = readonly string[]

/** Servers of Debian 12, which the suite uses, and newer ones. */
export const SERVER_VERSIONS: readonly ServerVersion[] = [
  installed('Redis', 'redis', ['redis-server'], () => startRedis()),
  newer('Redis', 'redis', newerCommand('usr/bin/redis-server'), (program) => startRedis({ program })),
  {
    name: 'Valkey',
    from: 'PyPI',
    store: 'redis',
    missing: missingPeer('valkey'),
    version: async () => versionSaidBy(peerCommand('valkey')),
    start: () => startRedis({ program: peerCommand('valkey') }),
  },
  installed('PostgreSQL', 'postgres', [find('postgres') ?? 'postgres'], () => startPostgres()),
  {
    name: 'PostgreSQL',
    from: 'npm',
    store: 'postgres',
    missing: missingNewer('postgres'),
    version: async () => versionSaidBy([`${newerPostgres()}/bin/postgres`]),
    start: () => startPostgres({ programs: `${newerPostgres()}/bin` }),
  },
  installed('MariaDB', 'mysql', [find('mariadbd') ?? 'mariadbd'], () => startMariadb()),
  newer('MariaDB', 'mysql', newerCommand('usr/sbin/mariadbd'), (command) =>
    startMariadb({ other: { command, shared: newerProgram('usr/share/mariadb') } }),
  ),
  ...givenMysql(),
  installed('etcd', 'etcd', ['etcd'], () => startEtcd()),
  newer('etcd', 'etcd', [newerProgram('usr/bin/etcd')], ([program = '']) => startEtcd({ program })),
  installed('memcached', 'memcached', ['memcached'], () => startMemcached()),
  newer('memcached', 'memcached', newerCommand('usr/bin/memcached'), (program) =>
    startMemcached({ program }),
  ),
]

function installed(
  name: string,
  store: StoreName,
  command: Command,
  start: ServerVersion['start'],
): ServerVersion {
  const [program = ''] = command
  const missing = find(program) === null ? `${program} not installed` : null
  return { name, from: 'Debian 12', store, missing, version: async () => versionSaidBy(command), start }
}

function newer(
  name: string,
  store: StoreName,
  command: Command,
  start: (command: Command) => ReturnType<ServerVersion['start']>,
): ServerVersion {
  const missing = missingNewer(name)
  const version = async (): Promise<string> => versionSaidBy(command)
  return { name, from: 'Debian 13', store, missing, version, start: () => start(command) }
}

/** MySQL is in none of the registries: one that runs already can be named. */
function givenMysql(): ServerVersion[] {
  const url = process.env['HOLDFAST_TEST_MYSQL_URL']
  const missing = url ? null : 'HOLDFAST_TEST_MYSQL_URL names none'
  const start = async () => ({ url: url ?? '', stop: async () => {} })
  return [{ name: 'MySQL', from: 'a running one', store: 'mysql', missing, version: mysqlVersion, start }]
}

async function mysqlVersion(): Promise<string> {
  const { createConnection } = await import('mysql2/promise')
  const connection = await createConnection(process.env['HOLDFAST_TEST_MYSQL_URL'] ?? '')
  const [rows] = await connection.query('select version() as version')
  await connection.end()
  return versionIn((rows as { version: string }[])[0]?.version ?? '')
}

function versionSaidBy([program = '', ...args]: Command): string {
  return versionIn(execFileSync(program, [...args, '--version'], { encoding: 'utf8' }))
}

function versionIn(text: string): string {
  return /\d+\.\d+(?:\.\d+)?/.exec(text.replace(/^.*ld-linux\S*/, ''))?.[0] ?? 'unknown'
}
