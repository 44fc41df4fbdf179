import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

const JAR = '/usr/share/java/zookeeper.jar'
const NO_LOG = '/usr/share/java/slf4j-nop.jar'
const MAIN = 'org.apache.zookeeper.server.quorum.QuorumPeerMain'

/**
 * A private server, or an ensemble of so many. `address` is one of them, a follower in an ensemble:
 * everybody is to ask the same one.
 */
export async function zookeeperServers(count) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-zookeeper-'))
  const peers = []
  if (count > 1)
    for (let id = 1; id <= count; id++)
      peers.push(`server.${id}=127.0.0.1:${await freePort()}:${await freePort()}`)
  const members = []
  for (let id = 1; id <= count; id++) members.push(await start(join(folder, String(id)), id, peers))
  const stop = async () => {
    for (const { process: server } of members) {
      server.kill('SIGKILL')
      if (server.exitCode === null && server.signalCode === null) await once(server, 'exit')
    }
    rmSync(folder, { recursive: true, force: true })
  }
  for (;;) {
    const modes = await Promise.all(members.map(({ port }) => mode(port)))
    const asked = modes.findIndex((each) => each === (count === 1 ? 'standalone' : 'follower'))
    if (asked >= 0 && !modes.includes(undefined)) return { address: `127.0.0.1:${members[asked].port}`, stop }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

async function start(folder, id, peers) {
  const port = await freePort()
  mkdirSync(join(folder, 'data'), { recursive: true })
  writeFileSync(join(folder, 'data', 'myid'), String(id))
  const config = [
    ...[`dataDir=${join(folder, 'data')}`, `clientPort=${port}`, 'clientPortAddress=127.0.0.1'],
    ...['tickTime=2000', 'initLimit=10', 'syncLimit=5', 'maxClientCnxns=0', 'forceSync=no'],
    ...['4lw.commands.whitelist=srvr', 'admin.enableServer=false', ...peers],
  ]
  const file = join(folder, 'zoo.cfg')
  writeFileSync(file, `${config.join('\n')}\n`)
  const args = ['-Xmx256m', '-XX:+UseSerialGC', '-cp', `${NO_LOG}:${JAR}`, MAIN, file]
  const server = spawn('java', args, { stdio: 'ignore', cwd: folder })
  server.once('error', (error) => {
    throw new Error(`java does not start (${error.message}); install the package zookeeper`)
  })
  server.once('exit', (code) => {
    if (code) throw new Error(`ZooKeeper ended with ${code}; is the package zookeeper installed?`)
  })
  process.once('exit', () => server.kill('SIGKILL'))
  return { port, process: server }
}

/** undefined: it does not serve yet. */
async function mode(port) {
  const socket = connect(port, '127.0.0.1')
  // One that is asked in the moment in which it begins to listen may never answer.
  socket.setTimeout(2000, () => socket.destroy())
  socket.write('srvr')
  const answer = await text(socket).catch(() => '')
  return /Mode: (\w+)/.exec(answer)?.[1]
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  return port
}
