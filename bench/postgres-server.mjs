import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { find } from '../scripts/servers.mjs'

const USER = ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups']

/**
 * A private PostgreSQL, or the server that HOLDFAST_BENCH_POSTGRES_URL names. It does not wait for
 * the disk, which would be most of what is measured, and allows more connections than by default:
 * one of the peers needs one for everybody who waits.
 */
export async function postgresServer() {
  const given = process.env.HOLDFAST_BENCH_POSTGRES_URL
  if (given) return { url: given, stop: async () => {} }
  const program = find('postgres')
  if (program === null)
    throw new Error('No PostgreSQL here; install postgresql, or set HOLDFAST_BENCH_POSTGRES_URL')
  // The server refuses to run as root.
  const prefix = process.getuid?.() === 0 ? USER : []
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-postgres-'))
  chmodSync(folder, 0o777)
  const data = join(folder, 'data')
  await run([...prefix, find('initdb'), '-D', data, '-U', 'postgres', '-A', 'trust', '--no-sync'])
  const port = await freePort()
  const settings = ['listen_addresses=127.0.0.1', `unix_socket_directories=${data}`, 'max_connections=500']
  settings.push('fsync=off', 'log_min_messages=fatal', 'log_min_error_statement=fatal')
  const options = ['-D', data, '-p', String(port), ...settings.flatMap((each) => ['-c', each])]
  const [command, ...args] = [...prefix, program, ...options]
  const server = spawn(command, args, { stdio: 'ignore', cwd: '/' })
  const stop = async () => {
    server.kill('SIGINT')
    if (server.exitCode === null) await once(server, 'exit')
    rmSync(folder, { recursive: true, force: true })
  }
  process.once('exit', () => server.kill('SIGQUIT'))
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  await ready(url)
  return { url, pid: server.pid, stop }
}

async function run([command, ...args]) {
  await promisify(execFile)(command, args, { cwd: '/' })
}

async function ready(url) {
  for (;;) {
    const client = new pg.Client(url)
    try {
      await client.connect()
      return await client.end()
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
