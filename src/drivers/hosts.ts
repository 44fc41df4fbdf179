import { invalid } from '../base/errors.js'

export interface Host {
  readonly host: string
  readonly port: number
}

/** Parses `host`, `host:1234` or `[::1]:1234`; null: it is none of them. */
export function parseHost(text: string, defaultPort: number): Host | null {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:\s]+))(?::(\d+))?$/.exec(text) ?? []
  const host = bracketed ?? plain
  const number = port === undefined ? defaultPort : Number(port)
  return host === undefined || number < 1 || number > 65_535 ? null : { host, port: number }
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
