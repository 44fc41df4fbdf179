import { execFileSync } from 'node:child_process'
import type { Server } from '../../test/servers/server.js'
import type { WallClock } from '../../test/servers/wall-clock.js'
import type { Choice, Nemesis } from '../nemesis.js'
import { clockDrifts } from './clients.js'
import { resetConnections } from './connections.js'
import { lasting, slowly } from './slowly.js'

/** The servers that a fault hits. */
export interface Hit {
  /** How the report calls them, such as `the server`. */
  readonly name: string
  /** Nobody is served without them. */
  readonly isAll?: boolean
  servers(choice: Choice): Promise<readonly Server[]> | readonly Server[]
}

/** `leaseExcuse`: what the page says about a pause of more than a lease. */
export function pausedServers(hit: Hit, leaseMs: number, leaseExcuse?: string): Nemesis[] {
  const pause = (name: string, leases: number, excuse?: string): Nemesis => ({
    name: `${hit.name} paused, ${name}`,
    hits: 'servers',
    lastsMs: leases * leaseMs,
    ...strength(hit, leases),
    ...(excuse !== undefined && { excuse, isLossy: true }),
    async begin(_, choice) {
      const servers = await hit.servers(choice)
      for (const server of servers) server.pause()
      return lasting(leases * leaseMs, async () => {
        for (const server of servers) server.resume()
      })
    },
  })
  return [pause('shorter than a lease', 0.4), pause('longer than a lease', 1.5, leaseExcuse)]
}

/** With their data kept. */
export function killedServers(hit: Hit, leaseMs: number): Nemesis[] {
  const kill = (name: string, leases: number): Nemesis => ({
    name: `${hit.name} killed (\`kill -9\`), back with the data ${name}`,
    hits: 'servers',
    lastsMs: leases * leaseMs,
    ...strength(hit, leases),
    async begin(_, choice) {
      const servers = await hit.servers(choice)
      await Promise.all(servers.map((server) => server.kill()))
      return () => startAll(servers)
    },
  })
  return [kill('at once', 0.1), kill('after a lease', 1.3)]
}

function strength({ isAll = false }: Hit, leases: number): Pick<Nemesis, 'stopsAll' | 'endsHolds'> {
  return { stopsAll: isAll, endsHolds: isAll && leases > 1 }
}

/** Those that have ended. */
export async function startAll(servers: readonly Server[]): Promise<void> {
  await Promise.all(servers.filter(({ isRunning }) => !isRunning).map((server) => server.start()))
}

/** One after the other. */
export function restartedServers(servers: readonly Server[]): Nemesis {
  return {
    name: 'rolling restart of the servers (`kill -9`)',
    hits: 'servers',
    lastsMs: 0,
    async begin() {
      return slowly(async () => {
        for (const server of servers) await server.restart({ keepData: true })
        return async () => {}
      })
    },
  }
}

/** `excuse`: what the page promises then. */
export function forgetfulServers(hit: Hit, leaseMs: number, excuse?: string): Nemesis {
  return {
    name: `${hit.name} killed, back without the data`,
    hits: 'servers',
    lastsMs: 0.5 * leaseMs,
    ...(excuse !== undefined && { excuse }),
    async begin(_, choice) {
      const servers = await hit.servers(choice)
      await Promise.all(servers.map((server) => server.restart({ keepData: false })))
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
export function serversWithoutDescriptors(hit: Hit, leaseMs: number): Nemesis {
  return {
    name: `${hit.name} out of file descriptors, connections reset`,
    hits: 'servers',
    lastsMs: 1.2 * leaseMs,
    async begin(_, choice) {
      const servers = await hit.servers(choice)
      for (const { pid } of servers) execFileSync('prlimit', ['--pid', String(pid), '--nofile=1:'])
      for (const { port } of servers) resetConnections(port)
      return async () => {
        for (const { pid } of servers) execFileSync('prlimit', ['--pid', String(pid), '--nofile=4096:'])
      }
    },
  }
}
