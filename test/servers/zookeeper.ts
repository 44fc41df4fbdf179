import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { eventually } from '../../src/testing/conformance/checks.js'
import { needServer } from './availability.js'
import { freePort } from './ports.js'
import { preloaded } from './preload.js'
import { TcpProxy } from './proxy.js'
import { Server, started } from './server.js'
import type { SlowDisk } from './slow-disk.js'

const JAR = '/usr/share/java/zookeeper.jar'
const SHOW_LOG = '/usr/share/java/slf4j-simple.jar'
// TLS needs more of it than Debian's class path of ZooKeeper names.
const NETTY = '/usr/share/java/netty-codec.jar:/usr/share/java/netty-resolver.jar'
const MAIN = 'org.apache.zookeeper.server.quorum.QuorumPeerMain'
/** Small, so that sessions of less than a second can be had. */
const TICK_MS = 200

export interface ZooKeeperServerOptions {
  /** Further lines of the configuration: `{ secureClientPort: '12345' }`. */
  config?: Readonly<Record<string, string>>
  /** Further system properties of Java: `{ 'zookeeper.serverCnxnFactory': '…' }`. */
  properties?: Readonly<Record<string, string>>
  /** A disk of its own. */
  disk?: SlowDisk
}

interface Member {
  readonly id: number
  /** Where the members find each other: the `server.N` lines of the configuration. */
  readonly peers: Readonly<Record<string, string>>
}

/** One ZooKeeper server, alone or as a member of an ensemble. */
export class ZooKeeperServer extends Server {
  constructor(port: number, options: ZooKeeperServerOptions = {}, member: Member | null = null) {
    super(
      {
        name: 'zookeeper',
        command: (server) => commandOf(server, options),
        env: preloaded(options.disk),
        layOut: async (server) => layOut(server, options, member),
        // `ruok` is answered before it serves.
        isReady: async (server) => (await fourLetters(server.port, 'srvr')).includes('Mode:'),
      },
      port,
    )
  }

  /** `standalone`, `leader` or `follower`. */
  async mode(): Promise<string> {
    return /Mode: (\w+)/.exec(await this.ask('srvr'))?.[1] ?? 'none'
  }

  /** One of the four-letter words: `await server.ask('cons')`. */
  ask(word: string): Promise<string> {
    return fourLetters(this.port, word)
  }
}

/** Starts a private ZooKeeper; ready in some 250 ms. */
export async function startZooKeeper(options: ZooKeeperServerOptions = {}): Promise<ZooKeeperServer> {
  needServer('zookeeper')
  return started(new ZooKeeperServer(await freePort(), options))
}

/** Three servers, of which one may fail. */
export class ZooKeeperEnsemble {
  readonly members: readonly ZooKeeperServer[]

  constructor(members: readonly ZooKeeperServer[]) {
    this.members = members
  }

  /** For clients: `127.0.0.1:1,127.0.0.1:2,127.0.0.1:3`. */
  get address(): string {
    return this.members.map((member) => member.address).join(',')
  }

  /** The members that serve, the leader first. */
  async serving(): Promise<ZooKeeperServer[]> {
    const modes = await Promise.all(this.members.map((member) => member.mode().catch(() => 'none')))
    const are = (mode: string) => this.members.filter((_, index) => modes[index] === mode)
    return [...are('leader'), ...are('follower')]
  }

  async leader(): Promise<ZooKeeperServer> {
    let leader: ZooKeeperServer | undefined
    await eventually('a leader', async () => {
      const [first] = await this.serving()
      leader = (await first?.mode()) === 'leader' ? first : undefined
      return leader !== undefined
    })
    if (!leader) throw new Error('no leader')
    return leader
  }

  async stop(): Promise<void> {
    await Promise.all(this.members.map((member) => member.stop()))
  }
}

/**
 * For tests that stop members: the others give a leader up after two seconds, and an election that
 * comes to nothing after five.
 */
export const QUICK_ELECTION = { syncLimit: '10', initLimit: '25' }

export interface EnsembleOptions extends ZooKeeperServerOptions {
  /**
   * The addresses by which a member finds the others, where they shall not be the true ones:
   * `{ 'server.1': 'host:port:port' }`.
   */
  peersOf?: (id: number, peers: Readonly<Record<string, string>>) => Promise<Record<string, string>>
}

/**
 * The first member reaches the others, of which one will lead, through proxies: to cut it off from
 * its leader.
 */
export function firstThroughProxies(proxies: TcpProxy[]): NonNullable<EnsembleOptions['peersOf']> {
  return async (id, peers) => {
    const seen = { ...peers }
    for (const other of id === 1 ? [2, 3] : []) {
      const [host, port, election] = (peers[`server.${other}`] ?? '').split(':')
      const proxy = await TcpProxy.start(Number(port))
      proxies.push(proxy)
      seen[`server.${other}`] = `${host}:${proxy.port}:${election}`
    }
    return seen
  }
}

/** Starts a private ensemble of three; ready in about a second. */
export async function startZooKeeperEnsemble(options: EnsembleOptions = {}): Promise<ZooKeeperEnsemble> {
  needServer('zookeeper')
  const peers: Record<string, string> = {}
  for (const id of [1, 2, 3]) peers[`server.${id}`] = `127.0.0.1:${await freePort()}:${await freePort()}`
  const members: ZooKeeperServer[] = []
  for (const id of [1, 2, 3]) {
    const seen = (await options.peersOf?.(id, peers)) ?? peers
    members.push(new ZooKeeperServer(await freePort(), options, { id, peers: seen }))
  }
  const ensemble = new ZooKeeperEnsemble(members)
  try {
    await Promise.all(members.map((member) => member.start()))
    return ensemble
  } catch (error) {
    await ensemble.stop()
    throw error
  }
}

function commandOf(server: Server, { properties = {} }: ZooKeeperServerOptions): string[] {
  const defines = Object.entries(properties).map(([name, value]) => `-D${name}=${value}`)
  const small = ['-Xmx128m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1']
  const path = [server.folder, SHOW_LOG, NETTY, JAR].join(':')
  return ['java', ...small, ...defines, '-cp', path, MAIN, join(server.folder, 'zoo.cfg')]
}

function layOut(server: Server, options: ZooKeeperServerOptions, member: Member | null): void {
  const config: Record<string, string> = {
    dataDir: server.dataFolder,
    clientPort: String(server.port),
    clientPortAddress: '127.0.0.1',
    tickTime: String(TICK_MS),
    minSessionTimeout: String(2 * TICK_MS),
    maxSessionTimeout: '60000',
    '4lw.commands.whitelist': '*',
    'admin.enableServer': 'false',
    maxClientCnxns: '0',
    forceSync: 'no',
    // Patient: a machine that stands still for some seconds is no reason for an election.
    ...(member && { initLimit: '50', syncLimit: '100', ...member.peers }),
    ...options.config,
  }
  const text = Object.entries(config).map(([name, value]) => `${name}=${value}\n`)
  writeFileSync(join(server.folder, 'zoo.cfg'), text.join(''))
  if (member) writeFileSync(join(server.dataFolder, 'myid'), String(member.id))
}

async function fourLetters(port: number, word: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.setTimeout(2000, () => socket.destroy(new Error(`no answer to ${word}`)))
  socket.write(word)
  return text(socket)
}
