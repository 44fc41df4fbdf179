import { invalid } from '../../base/errors.js'
import { type Host, parseHost } from '../hosts.js'

const DEFAULT_PORT = 2379

/** Parses `host1:2379,[::1]:2379`. */
export function parseEtcdServers(servers: string): Host[] {
  return servers.split(',').map((text) => {
    const host = parseHost(text.trim(), DEFAULT_PORT)
    if (!host) throw invalid(`'${servers}' does not name etcd servers; write host1:2379,host2:2379`)
    return host
  })
}

export function addressOf({ host, port }: Host): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}
