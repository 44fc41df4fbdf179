import { execFileSync } from 'node:child_process'
import type { Server } from '../../test/servers/server.js'

/** How many connections there were. */
export function resetConnections(port: number): number {
  return connectionsTo(port, ['-K'])
}

/** Whether clients are connected to it: otherwise there is nothing that its network could lose. */
export function hasClients({ port }: Server): boolean {
  return connectionsTo(port, ['-t', 'state', 'established']) > 0
}

/** A line for each, after the heading. */
function connectionsTo(port: number, options: readonly string[]): number {
  const args = [...options, 'dst', '127.0.0.1', 'dport', '=', String(port)]
  const lines = execFileSync('ss', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  return lines.trim().split('\n').length - 1
}
