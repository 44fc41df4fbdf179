import { invalid } from '../../base/errors.js'
import { checkPath } from './paths.js'

const DEFAULT_PORT = 2181

export interface Host {
  readonly host: string
  readonly port: number
}

/** Parses `host1:2181,[::1]:2182/chroot`. */
export function parseServers(servers: string): { hosts: Host[]; chroot: string } {
  const slash = servers.indexOf('/')
  const list = slash < 0 ? servers : servers.slice(0, slash)
  return {
    hosts: list.split(',').map((text) => parseHost(text.trim(), servers)),
    chroot: slash < 0 ? '/' : checkPath(servers.slice(slash)),
  }
}

function parseHost(text: string, servers: string): Host {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:\s]+))(?::(\d+))?$/.exec(text) ?? []
  const host = bracketed ?? plain
  const number = port === undefined ? DEFAULT_PORT : Number(port)
  if (host === undefined || number < 1 || number > 65_535)
    throw invalid(
      `'${text}' in '${servers}' is no server: write host:port, with commas between servers and brackets around IPv6 addresses`,
    )
  return { host, port: number }
}

/** The servers in random order, round and round. */
export class HostRing {
  readonly #hosts: Host[]
  #next = 0

  constructor(hosts: readonly Host[], random: () => number) {
    this.#hosts = shuffled(hosts, random)
  }

  get size(): number {
    return this.#hosts.length
  }

  next(): Host {
    const host = this.#hosts[this.#next++ % this.#hosts.length]
    if (host === undefined) throw invalid('There is no server to connect to')
    return host
  }
}

function shuffled(hosts: readonly Host[], random: () => number): Host[] {
  return hosts
    .map((host) => ({ host, order: random() }))
    .sort((one, other) => one.order - other.order)
    .map(({ host }) => host)
}
