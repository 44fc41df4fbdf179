import { execFileSync } from 'node:child_process'
import type { Server } from '../../test/servers/server.js'

/** How many connections there were. */
export function resetConnections(port: number): number {
  return connectionsTo(port, ['-K'])
}

/** How many are connected to it. A server of etcd is a client of its own. */
export function clientsOf({ port }: Server): number {
  return connectionsTo(port, ['-t', 'state', 'established'])
}

/** A line for each, after the heading. */
function connectionsTo(port: number, options: readonly string[]): number {
  const args = [...options, 'dst', '127.0.0.1', 'dport', '=', String(port)]
  const lines = execFileSync('ss', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  return lines.trim().split('\n').length - 1
}
