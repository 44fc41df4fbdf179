import { execFileSync } from 'node:child_process'
import type { Server } from '../../test/servers/server.js'
import type { WallClock } from '../../test/servers/wall-clock.js'
import type { Choice, Nemesis } from '../nemesis.js'
import { clockDrifts } from './clients.js'

/** Gives the servers that a fault hits. */
export type Targets = (choice: Choice) => Promise<readonly Server[]>

/** `of`: how the report calls them, such as `the server`. */
export function pausedServers(
  of: string,
  leaseMs: number,
  targets: Targets,
  leaseExcuse?: string,
): Nemesis[] {
  const pause = (name: string, leases: number, excuse?: string): Nemesis => ({
    name,
    hits: 'servers',
    lastsMs: leases * leaseMs,
    ...(excuse !== undefined && { excuse, isLossy: true }),
    async begin(_, choice) {
      const servers = await targets(choice)
      for (const server of servers) server.pause()
      return async () => {
        for (const server of servers) server.resume()
      }
    },
  })
  return [
    pause(`${of} paused, shorter than a lease`, 0.4),
    pause(`${of} paused, longer than a lease`, 1.5, leaseExcuse),
  ]
}

/** With its data kept. */
export function killedServers(of: string, leaseMs: number, targets: Targets): Nemesis {
  return {
    name: `${of} killed (\`kill -9\`), back with its data`,
    hits: 'servers',
    lastsMs: 0.1 * leaseMs,
    async begin(_, choice) {
      const servers = await targets(choice)
      await Promise.all(servers.map((server) => server.kill()))
      return () => Promise.all(servers.map((server) => server.start()))
    },
  }
}

/** `excuse`: what the page promises then. */
export function forgetfulServers(of: string, leaseMs: number, targets: Targets, excuse?: string): Nemesis {
  return {
    name: `${of} killed, back without its data`,
    hits: 'servers',
    lastsMs: 0.5 * leaseMs,
    ...(excuse !== undefined && { excuse }),
    async begin(_, choice) {
      await Promise.all((await targets(choice)).map((server) => server.restart({ keepData: false })))
      return async () => {}
    },
  }
}

/** Of servers that were started with this clock. */
export function serverClocks(of: string, clock: WallClock, leaseMs: number, excuse: string): Nemesis[] {
  return [...serverClockJumps(of, clock, leaseMs, excuse), ...serverClockDrifts(of, clock, leaseMs)]
}

/** The clock stays where it was set: setting it right would be the other jump. */
function serverClockJumps(of: string, clock: WallClock, leaseMs: number, excuse: string): Nemesis[] {
  let offsetS = 0
  const jump = (name: string, seconds: number): Nemesis => ({
    name,
    hits: 'clocks',
    lastsMs: leaseMs,
    ...(seconds > 0 && { excuse }),
    async begin() {
      offsetS += seconds
      clock.set(offsetS)
      return async () => {}
    },
  })
  return [jump(`clock of ${of} set back by an hour`, -3600), jump(`clock of ${of} set ahead by a minute`, 60)]
}

export function serverClockDrifts(of: string, clock: WallClock, leaseMs: number): Nemesis[] {
  return clockDrifts(`clock of ${of} runs`, clock, leaseMs)
}

/** Existing connections work; nobody can make a new one. */
export function withoutDescriptors(of: string, leaseMs: number, targets: Targets): Nemesis {
  return {
    name: `${of} out of file descriptors, connections reset`,
    hits: 'servers',
    lastsMs: 1.2 * leaseMs,
    async begin(_, choice) {
      const servers = await targets(choice)
      for (const { pid } of servers) execFileSync('prlimit', ['--pid', String(pid), '--nofile=1:'])
      for (const { port } of servers) resetConnections(port)
      return async () => {
        for (const { pid } of servers) execFileSync('prlimit', ['--pid', String(pid), '--nofile=4096:'])
      }
    },
  }
}

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
