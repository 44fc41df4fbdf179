import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'

/** A private memcached, or the server that HOLDFAST_BENCH_MEMCACHED names (`host:port`). */
export async function memcachedServer() {
  const given = process.env.HOLDFAST_BENCH_MEMCACHED
  if (given) return { address: given, stop: async () => {} }
  const port = await freePort()
  const asRoot = process.getuid?.() === 0 ? ['-u', 'root'] : []
  const args = ['-l', '127.0.0.1', '-p', String(port), '-U', '0', '-m', '64', ...asRoot]
  const server = spawn('memcached', args, { stdio: 'ignore' })
  server.once('error', (error) => {
    throw new Error(
      `memcached cannot be started (${error.message}); install memcached, or set HOLDFAST_BENCH_MEMCACHED`,
    )
  })
  process.once('exit', () => server.kill('SIGKILL'))
  await ready(port)
  const stop = async () => {
    server.kill('SIGKILL')
    if (server.exitCode === null) await once(server, 'exit')
  }
  return { address: `127.0.0.1:${port}`, stop }
}

async function ready(port) {
  for (;;) {
    const socket = connect(port, '127.0.0.1')
    try {
      await once(socket, 'connect')
      return
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 20))
    } finally {
      socket.destroy()
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
