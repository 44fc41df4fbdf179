import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createConnection } from 'mysql2/promise'

/**
 * A private MariaDB, or the server that HOLDFAST_BENCH_MYSQL_URL names. It does not wait for the
 * disk: that would be most of what is measured.
 */
export async function mysqlServer() {
  const given = process.env.HOLDFAST_BENCH_MYSQL_URL
  if (given) return { url: given, stop: async () => {} }
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-mysql-'))
  const port = await freePort()
  const common = ['--no-defaults', `--datadir=${join(folder, 'data')}`, `--tmpdir=${folder}`]
  if (process.getuid?.() === 0) common.push('--user=root')
  const how = ['--auth-root-authentication-method=normal', '--skip-test-db']
  await promisify(execFile)('mariadb-install-db', [...common, ...how]).catch((error) => {
    throw new Error(
      `MariaDB cannot be set up (${error.message}); install mariadb-server, or set HOLDFAST_BENCH_MYSQL_URL`,
    )
  })
  const where = [`--port=${port}`, '--bind-address=127.0.0.1', `--socket=${join(folder, 'socket')}`]
  const rest = [`--pid-file=${join(folder, 'pid')}`, '--max-connections=500']
  const quick = [
    '--innodb-flush-log-at-trx-commit=2',
    '--innodb-flush-method=nosync',
    '--loose-innodb-log-file-buffering=1',
  ]
  const server = spawn('mariadbd', [...common, ...where, ...rest, ...quick], { stdio: 'ignore' })
  const stop = async () => {
    server.kill('SIGKILL')
    if (server.exitCode === null) await once(server, 'exit')
    rmSync(folder, { recursive: true, force: true })
  }
  process.once('exit', () => server.kill('SIGKILL'))
  await ready(port)
  return { url: `mysql://root@127.0.0.1:${port}/bench`, pid: server.pid, stop }
}

async function ready(port) {
  for (;;) {
    try {
      const connection = await createConnection({ host: '127.0.0.1', port, user: 'root' })
      await connection.query('CREATE DATABASE IF NOT EXISTS bench')
      return await connection.end()
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  return port
}
