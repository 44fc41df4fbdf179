import { invalid } from '../../base/errors.js'
import { type Host, parseHost } from '../hosts.js'
import { checkPath } from './paths.js'

const DEFAULT_PORT = 2181

/** Parses `host1:2181,[::1]:2182/chroot`. */
export function parseServers(servers: string): { hosts: Host[]; chroot: string } {
  const slash = servers.indexOf('/')
  const list = slash < 0 ? servers : servers.slice(0, slash)
  return {
    hosts: list.split(',').map((text) => serverOf(text.trim(), servers)),
    chroot: slash < 0 ? '/' : checkPath(servers.slice(slash)),
  }
}

function serverOf(text: string, servers: string): Host {
  const host = parseHost(text, DEFAULT_PORT)
  if (host) return host
  throw invalid(
    `'${text}' in '${servers}' is not a server: write host:port, with commas between servers and brackets around IPv6 addresses`,
  )
}
