import { execFile, execFileSync } from 'node:child_process'
import { promisify } from 'node:util'
import { eventually } from '../../src/testing/conformance/checks.js'
import { needServer } from './availability.js'
import { freePort } from './ports.js'
import { Server, started } from './server.js'

const run = promisify(execFile)

export interface EtcdServerOptions {
  /** Further arguments: `['--auth-token', 'simple']`. */
  args?: readonly string[]
  /** Another version. */
  program?: string
  /** Of the address for clients. Default: `http`. */
  scheme?: 'http' | 'https'
  /** Further arguments of etcdctl. */
  ctl?: readonly string[]
}

interface EtcdPlace {
  readonly name: string
  /** Of all members: `a=http://127.0.0.1:1,b=http://127.0.0.1:2`. */
  readonly cluster: string
  readonly peerUrl: string
  /** Fast alone; of several, patient: a machine that stands still is no reason for an election. */
  readonly times: readonly string[]
}

/** One etcd server, alone or as a member of three. */
export class EtcdServer extends Server {
  /** Where the other servers reach it. */
  readonly peerPort: number
  readonly #scheme: string
  readonly #ctl: readonly string[]

  constructor(port: number, place: EtcdPlace, options: EtcdServerOptions = {}) {
    const { scheme = 'http' } = options
    super(
      {
        name: 'etcd',
        command: (server) => commandOf(server, place, options),
        isReady: async () => (await this.ctl('endpoint', 'status', '-w', 'json')).includes('"leader"'),
        env: { ETCD_UNSUPPORTED_ARCH: process.arch },
      },
      port,
    )
    this.peerPort = Number(new URL(place.peerUrl).port)
    this.#scheme = scheme
    this.#ctl = options.ctl ?? []
  }

  get url(): string {
    return `etcd://${this.address}`
  }

  /** What etcdctl prints: `await server.ctl('get', 'a')`. */
  async ctl(...args: readonly string[]): Promise<string> {
    const { stdout } = await run(
      'etcdctl',
      ['--endpoints', `${this.#scheme}://${this.address}`, ...this.#ctl, ...args],
      {
        env: { ...process.env, ETCDCTL_API: '3' },
        timeout: 10_000,
      },
    )
    return stdout
  }

  /** Adds the user `root`. Nobody is asked for a password before `auth enable`. */
  async addRoot(password = 'secret'): Promise<void> {
    await this.ctl('user', 'add', `root:${password}`)
    await this.ctl('user', 'grant-role', 'root', 'root')
  }

  /** Adds the user `app` with the password `secret`. It may use the keys below the prefix, if any. */
  async addApp(prefix?: string): Promise<void> {
    await this.ctl('user', 'add', 'app:secret')
    if (prefix === undefined) return
    await this.ctl('role', 'add', 'some')
    await this.ctl('role', 'grant-permission', 'some', '--prefix=true', 'readwrite', prefix)
    await this.ctl('user', 'grant-role', 'app', 'some')
  }

  /** Ends the tokens of a user: it gets its password `secret` again, and loses them by that. */
  endTokens(user: string): void {
    // Hashing a password takes a busy machine longer than the 5 s that etcdctl waits.
    const patient = ['--endpoints', this.address, '--command-timeout', '60s']
    const passwd = ['--user', 'root:secret', 'user', 'passwd', user, '--interactive=false']
    execFileSync('etcdctl', [...patient, ...passwd], {
      input: 'secret\n',
      env: { ...process.env, ETCDCTL_API: '3' },
    })
  }

  async isLeader(): Promise<boolean> {
    const [{ Status }] = JSON.parse(await this.ctl('endpoint', 'status', '-w', 'json'))
    return Status.leader !== undefined && Status.leader === Status.header.member_id
  }

  /** Forgets the history up to now. */
  async compact(): Promise<void> {
    const [{ Status }] = JSON.parse(await this.ctl('endpoint', 'status', '-w', 'json'))
    // Where this server is behind, another one may have compacted more already.
    await this.ctl('compact', String(Status.header.revision)).catch((error: Error) => {
      if (!error.message.includes('required revision has been compacted')) throw error
    })
  }
}

/** Starts a private etcd; ready in some 100 ms. */
export async function startEtcd(options: EtcdServerOptions = {}): Promise<EtcdServer> {
  needServer('etcd')
  const peerUrl = `http://127.0.0.1:${await freePort()}`
  const times = ['--heartbeat-interval', '10', '--election-timeout', '100']
  const place = { name: 'a', cluster: `a=${peerUrl}`, peerUrl, times }
  return started(new EtcdServer(await freePort(), place, options))
}

/** Three servers, of which one may fail. */
export class EtcdCluster {
  readonly members: readonly EtcdServer[]

  constructor(members: readonly EtcdServer[]) {
    this.members = members
  }

  /** For clients: `127.0.0.1:1,127.0.0.1:2,127.0.0.1:3`. */
  get address(): string {
    return this.members.map((member) => member.address).join(',')
  }

  get url(): string {
    return `etcd://${this.address}`
  }

  /** The leader, as it says itself, and the others. */
  async ranked(): Promise<{ leader: EtcdServer; followers: EtcdServer[] }> {
    let leader: EtcdServer | undefined
    await eventually('a leader', async () => {
      const isLeader = await Promise.all(this.members.map((member) => member.isLeader().catch(() => false)))
      leader = this.members.find((_, index) => isLeader[index])
      return leader !== undefined
    })
    if (!leader) throw new Error('no leader')
    return { leader, followers: this.members.filter((member) => member !== leader) }
  }

  async stop(): Promise<void> {
    await Promise.all(this.members.map((member) => member.stop()))
  }
}

/** Starts three private servers; ready in about a second. */
export async function startEtcdCluster(options: EtcdServerOptions = {}): Promise<EtcdCluster> {
  needServer('etcd')
  const names = ['a', 'b', 'c']
  const peerUrls = await Promise.all(names.map(async () => `http://127.0.0.1:${await freePort()}`))
  const cluster = names.map((name, index) => `${name}=${peerUrls[index]}`).join(',')
  const times = ['--heartbeat-interval', '50', '--election-timeout', '500']
  const members = await Promise.all(
    names.map(async (name, index) => {
      const place = { name, cluster, peerUrl: peerUrls[index] ?? '', times }
      return new EtcdServer(await freePort(), place, options)
    }),
  )
  const started = new EtcdCluster(members)
  try {
    await Promise.all(members.map((member) => member.start()))
    return started
  } catch (error) {
    await started.stop()
    throw error
  }
}

function commandOf(
  server: Server,
  place: EtcdPlace,
  { args = [], scheme = 'http', program = 'etcd' }: EtcdServerOptions,
): string[] {
  const url = `${scheme}://${server.address}`
  return [
    ...[program, '--name', place.name, '--data-dir', server.dataFolder],
    ...['--listen-client-urls', url, '--advertise-client-urls', url],
    ...['--listen-peer-urls', place.peerUrl, '--initial-advertise-peer-urls', place.peerUrl],
    ...['--initial-cluster', place.cluster, '--unsafe-no-fsync'],
    ...place.times,
    ...args,
  ]
}
