import { execFile } from 'node:child_process'
import { chmodSync, chownSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { find } from '../../scripts/servers.mjs'
import { eventually } from '../../src/testing/conformance/checks.js'
import { isRunning } from '../cli/processes.js'
import { needServer } from './availability.js'
import { freePort } from './ports.js'
import { preloaded } from './preload.js'
import { Server, started } from './server.js'
import type { SlowDisk } from './slow-disk.js'
import type { WallClock } from './wall-clock.js'

const run = promisify(execFile)

export interface PostgresOptions {
  /** Further options of the server: `['-c', 'idle_session_timeout=500']`. */
  args?: readonly string[]
  /** A clock of its own in place of the machine's. */
  clock?: WallClock
  /** A disk of its own; needs `fsync=on`. */
  disk?: SlowDisk
  /** Another version: the folder with its programs. */
  programs?: string
}

/** One PostgreSQL, with a superuser `postgres` that needs no password. */
export class PostgresServer extends Server {
  constructor(port: number, { args = [], clock, disk, programs }: PostgresOptions = {}) {
    super(
      {
        name: 'postgres',
        command: (server) => [...asPostgres(), program('postgres', programs), ...optionsOf(server), ...args],
        env: preloaded(clock, disk),
        layOut: (server) => layOut(server, program('initdb', programs)),
        isReady: async (server) => (await psql(server.port, 'select 1')) === '1',
        // Ends every session and leaves no shared memory behind.
        stopSignal: 'SIGINT',
      },
      port,
    )
  }

  get url(): string {
    return `postgres://postgres@${this.address}/postgres`
  }

  /** One statement; resolves with the rows as unaligned text. */
  query(sql: string): Promise<string> {
    return psql(this.port, sql)
  }

  /** Gives a folder to the user that it runs as. */
  async own(folder: string): Promise<void> {
    if (!isRoot()) return
    const { uid, gid } = await userPostgres()
    chownSync(folder, uid, gid)
  }

  /** Each of them is a process of its own. */
  get sessions(): number[] {
    return sessionsOf(this.pid)
  }

  /** With its sessions. */
  override pause(): void {
    const { sessions } = this
    super.pause()
    for (const pid of sessions) signal(pid, 'SIGSTOP')
  }

  override resume(): void {
    if (!this.isRunning) return
    for (const pid of this.sessions) signal(pid, 'SIGCONT')
    super.resume()
  }

  /** Ends every session but the one that does it. */
  async dropClients(): Promise<void> {
    await this.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()",
    )
  }

  /**
   * Also waits for its sessions, which end by themselves a moment later: until then it cannot be
   * started again.
   */
  override async kill(signal?: NodeJS.Signals): Promise<void> {
    const sessions = this.isRunning ? this.sessions : []
    await super.kill(signal)
    await eventually('the end of the sessions', () => !sessions.some(isRunning))
  }
}

/** Starts a private PostgreSQL; ready in some 0.6 s. */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  needServer('postgres')
  return started(new PostgresServer(await freePort(), options))
}

/**
 * A PostgreSQL for tests that neither stop nor configure it: the one that
 * HOLDFAST_TEST_POSTGRES_URL names, or a private one. Others may use it, too; use a schema or space
 * of your own.
 */
export async function borrowPostgres(): Promise<{ url: string; stop(): Promise<void> }> {
  const url = process.env['HOLDFAST_TEST_POSTGRES_URL']
  return url ? { url, stop: async () => {} } : startPostgres()
}

async function layOut(server: Server, initdb: string): Promise<void> {
  if (isRoot()) {
    const { uid, gid } = await userPostgres()
    chmodSync(server.folder, 0o755)
    chownSync(server.dataFolder, uid, gid)
  }
  const how = ['-U', 'postgres', '-A', 'trust', '--no-sync', '-E', 'UTF8', '--locale=C']
  const [file = '', ...args] = [...asPostgres(), initdb, '-D', server.dataFolder, ...how]
  await run(file, args, { cwd: '/' })
}

function optionsOf(server: Server): string[] {
  const settings = [
    'listen_addresses=127.0.0.1',
    `unix_socket_directories=${server.dataFolder}`,
    'fsync=off',
    'max_connections=300',
  ]
  return ['-D', server.dataFolder, '-p', String(server.port), ...settings.flatMap((each) => ['-c', each])]
}

export async function psql(port: number, sql: string): Promise<string> {
  const where = ['-h', '127.0.0.1', '-p', String(port), '-U', 'postgres', '-d', 'postgres']
  const { stdout } = await run(program('psql'), [...where, '-XAtq', '-v', 'ON_ERROR_STOP=1', '-c', sql], {
    timeout: 10_000,
  })
  return stdout.trim()
}

/** The server refuses to run as root. */
export function asPostgres(): string[] {
  return isRoot() ? ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups'] : []
}

async function userPostgres(): Promise<{ uid: number; gid: number }> {
  const [uid, gid] = await Promise.all(['-u', '-g'].map((flag) => run('id', [flag, 'postgres'])))
  return { uid: Number(uid?.stdout), gid: Number(gid?.stdout) }
}

function isRoot(): boolean {
  return process.getuid?.() === 0
}

function program(name: string, folder?: string): string {
  return folder === undefined ? (find(name) ?? name) : join(folder, name)
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // It has ended meanwhile.
  }
}

/**
 * Its other child, the shell with its will, must never stand still: it ends the server when the
 * tests are killed.
 */
function sessionsOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .trim()
    .split(' ')
    .filter(Boolean)
    .map(Number)
    .filter((child) => nameOf(child) === 'postgres')
}

function nameOf(pid: number): string | null {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
  } catch {
    // It has ended since.
    return null
  }
}
