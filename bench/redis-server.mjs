import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * A private Redis without persistence, or, unless it has to be an `own` one, the one that
 * HOLDFAST_BENCH_REDIS_URL names.
 */
export async function redisServer({ own = false } = {}) {
  const given = process.env.HOLDFAST_BENCH_REDIS_URL
  if (given && !own) return { url: given, stop: async () => {} }
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-redis-'))
  const port = await freePort()
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', '']
  const server = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const stop = async () => {
    server.kill()
    if (server.exitCode === null) await once(server, 'exit')
    rmSync(folder, { recursive: true, force: true })
  }
  const kill = () => server.kill('SIGKILL')
  process.once('exit', kill)
  server.once('error', (error) => {
    throw new Error(
      `redis-server does not start (${error.message}); install it, or set HOLDFAST_BENCH_REDIS_URL`,
    )
  })
  for await (const text of server.stdout) if (String(text).includes('Ready to accept connections')) break
  server.stdout?.resume()
  return { url: `redis://127.0.0.1:${port}`, pid: server.pid, stop }
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  return port
}
