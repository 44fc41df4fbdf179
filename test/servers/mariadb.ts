import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { find } from '../../scripts/servers.mjs'
import { needServer } from './availability.js'
import { freePort } from './ports.js'
import { Server, started } from './server.js'
import type { WallClock } from './wall-clock.js'

const run = promisify(execFile)

export interface MariadbOptions {
  /** Further options of the server: `['--wait-timeout=1']`. */
  args?: readonly string[]
  /** A clock of its own in place of the machine's. */
  clock?: WallClock
  /** Another version. */
  other?: OtherMariadb
}

/** A MariaDB that is not installed. */
interface OtherMariadb {
  readonly command: readonly string[]
  /** With its messages, and the statements that lay out its tables. */
  readonly shared: string
}

/** One MariaDB, with a superuser `root` that needs no password and a database `test`. */
export class MariadbServer extends Server {
  constructor(port: number, { args = [], clock, other }: MariadbOptions = {}) {
    super(
      {
        name: 'mariadb',
        command: (server) => [...commandOf(other), ...optionsOf(server), ...sharedOf(other), ...args],
        env: clock?.env ?? {},
        layOut: (server) => (other ? layOutOther(server, other) : layOut(server)),
        isReady: async (server) =>
          (await client(server.port, ['-e', 'create database if not exists test'])) === '',
      },
      port,
    )
  }

  get url(): string {
    return `mysql://root@${this.address}/test`
  }

  /** One statement; resolves with the rows as tab-separated text. */
  query(sql: string): Promise<string> {
    return client(this.port, ['-D', 'test', '-e', sql])
  }

  /** Ends every connection but the one that says so (KILL). */
  async dropClients(): Promise<void> {
    const ids = await this.query(
      'select id from information_schema.processlist where id <> connection_id() and user = "root"',
    )
    // One that has ended by itself meanwhile is fine.
    for (const id of ids.split('\n').filter(Boolean)) await this.query(`kill ${id}`).catch(() => {})
  }
}

/** Starts a private MariaDB; ready in some 0.7 s. */
export async function startMariadb(options: MariadbOptions = {}): Promise<MariadbServer> {
  needServer('mariadb')
  return started(new MariadbServer(await freePort(), options))
}

/**
 * A MariaDB for tests that neither stop nor configure it: the one that HOLDFAST_TEST_MYSQL_URL
 * names, or a private one. Tables of others may be in it; use a prefix or a space of your own.
 */
export async function borrowMariadb(): Promise<{ url: string; stop(): Promise<void> }> {
  const url = process.env['HOLDFAST_TEST_MYSQL_URL']
  return url ? { url, stop: async () => {} } : startMariadb()
}

async function layOut(server: Server): Promise<void> {
  const how = ['--auth-root-authentication-method=normal', '--skip-test-db']
  await run(program('mariadb-install-db'), [...commonOf(server), ...how])
}

/** What mariadb-install-db does: it looks for the programs of its own version only. */
async function layOutOther(server: Server, other: OtherMariadb): Promise<void> {
  const files = ['mariadb_system_tables', 'mariadb_performance_tables', 'mariadb_system_tables_data']
  const settings = ['create database mysql;', 'use mysql;', 'set @auth_root_socket=NULL;']
  const input = [
    ...settings,
    'set @skip_auth_anonymous=1;',
    ...files.map((name) => readFileSync(join(other.shared, `${name}.sql`), 'utf8')),
  ]
  const [file = '', ...args] = [...commandOf(other), ...commonOf(server), ...sharedOf(other), '--bootstrap']
  const starting = run(file, args, { maxBuffer: 2 ** 24 })
  starting.child.stdin?.end(input.join('\n'))
  await starting
}

function commandOf(other: OtherMariadb | undefined): readonly string[] {
  return other?.command ?? [program('mariadbd')]
}

function sharedOf(other: OtherMariadb | undefined): string[] {
  if (other === undefined) return []
  return [`--lc-messages-dir=${other.shared}`, `--character-sets-dir=${join(other.shared, 'charsets')}`]
}

function optionsOf(server: Server): string[] {
  const paths = [`--socket=${join(server.folder, 'socket')}`, `--pid-file=${join(server.folder, 'pid')}`]
  // What is committed survives the death of the server, not of the machine: that would cost a wait
  // for the disk at each commit. The log would be written past the cache of the system unless told,
  // which is such a wait, too.
  const quick = [
    '--innodb-flush-log-at-trx-commit=2',
    '--innodb-flush-method=nosync',
    '--loose-innodb-log-file-buffering=1',
    '--debug-no-sync',
  ]
  return [...commonOf(server), `--port=${server.port}`, '--bind-address=127.0.0.1', ...quick, ...paths]
}

/** It refuses to run as root unless told by name. `--no-defaults` has to come first. */
function commonOf(server: Server): string[] {
  const user = process.getuid?.() === 0 ? ['--user=root'] : []
  // A starting server, also the one that lays out the data, removes temporary tables from the
  // folder of temporary files, those of others among them.
  return ['--no-defaults', ...user, `--datadir=${server.dataFolder}`, `--tmpdir=${server.folder}`]
}

async function client(port: number, args: readonly string[]): Promise<string> {
  const where = ['--no-defaults', '-h127.0.0.1', `-P${port}`, '-uroot', '-NB']
  const { stdout } = await run(program('mariadb'), [...where, ...args], { timeout: 10_000 })
  return stdout.trim()
}

function program(name: string): string {
  return find(name) ?? name
}
