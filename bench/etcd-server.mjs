import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A private server, or a cluster of so many. `address` is one of them: everybody is to ask the same one. */
export async function etcdServers(count) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-etcd-'))
  const members = []
  for (let id = 0; id < count; id++) members.push({ id, port: await freePort(), peerPort: await freePort() })
  const cluster = members.map(({ id, peerPort }) => `m${id}=http://127.0.0.1:${peerPort}`).join(',')
  const processes = members.map((member) => start(folder, member, cluster))
  const stop = async () => {
    for (const server of processes) {
      server.kill('SIGKILL')
      if (server.exitCode === null && server.signalCode === null) await once(server, 'exit')
    }
    rmSync(folder, { recursive: true, force: true })
  }
  const address = `127.0.0.1:${members[0].port}`
  for (let tries = 0; ; tries++) {
    try {
      execFileSync('etcdctl', ['--endpoints', address, 'get', 'a'], { stdio: 'ignore', env: env() })
      return { address, stop }
    } catch (error) {
      if (tries === 20) throw error
    }
  }
}

function env() {
  return { ...process.env, ETCDCTL_API: '3' }
}

function start(folder, { id, port, peerPort }, cluster) {
  const [client, peer] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${peerPort}`]
  mkdirSync(join(folder, String(id)))
  const server = spawn(
    'etcd',
    [
      ...['--name', `m${id}`, '--data-dir', join(folder, String(id)), '--unsafe-no-fsync'],
      ...['--listen-client-urls', client, '--advertise-client-urls', client],
      ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer],
      ...['--initial-cluster', cluster],
    ],
    { stdio: 'ignore' },
  )
  server.once('error', (error) => {
    throw new Error(`etcd does not start (${error.message}); install the package etcd-server`)
  })
  const end = () => server.kill('SIGKILL')
  process.once('exit', end)
  server.once('exit', () => process.off('exit', end))
  return server
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  return port
}
