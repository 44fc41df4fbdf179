import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { find } from '../../scripts/servers.mjs'
import { needServer } from './availability.js'
import { freePort } from './ports.js'
import { asPostgres, type PostgresServer, psql, startPostgres } from './postgres.js'
import { Server, started } from './server.js'

/** A PgBouncer in transaction mode, with a PostgreSQL of its own behind it. */
export class PgBouncer extends Server {
  readonly postgres: PostgresServer

  constructor(port: number, postgres: PostgresServer) {
    super(
      {
        name: 'pgbouncer',
        // It refuses to run as root.
        command: (server) => [...asPostgres(), find('pgbouncer') ?? 'pgbouncer', '-q', iniOf(server)],
        layOut: async (server) => {
          chmodSync(server.folder, 0o755)
          writeFileSync(iniOf(server), settings(server, postgres.port))
        },
        isReady: async (server) => (await psql(server.port, 'select 1')) === '1',
      },
      port,
    )
    this.postgres = postgres
  }

  get url(): string {
    return `postgres://postgres@${this.address}/postgres`
  }

  /** Past the pooler. */
  get listenUrl(): string {
    return this.postgres.url
  }

  override async stop(): Promise<void> {
    await super.stop()
    await this.postgres.stop()
  }
}

export async function startPgBouncer(): Promise<PgBouncer> {
  needServer('pgbouncer')
  return started(new PgBouncer(await freePort(), await startPostgres()))
}

function iniOf(server: Server): string {
  return join(server.folder, 'pgbouncer.ini')
}

function settings(server: Server, port: number): string {
  return [
    '[databases]',
    `* = host=127.0.0.1 port=${port} user=postgres`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${server.port}`,
    'unix_socket_dir =',
    'auth_type = any',
    'pool_mode = transaction',
    'default_pool_size = 20',
    'max_client_conn = 1000',
    'ignore_startup_parameters = extra_float_digits',
    '',
  ].join('\n')
}
