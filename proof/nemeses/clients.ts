import { execFileSync } from 'node:child_process'
import { missingPrevious } from '../../scripts/previous.mjs'
import type { WallClock } from '../../test/servers/wall-clock.js'
import type { Crowd, Version, Worker } from '../crowd.js'
import type { Choice, Nemesis } from '../nemesis.js'
import { resetConnections } from './connections.js'
import { lasting, slowly } from './slowly.js'

const HOUR_S = 3600
/** Below what `docs/guarantees.md` allows, one percent. */
const DRIFT_PPM = 9000

/** What can happen to clients of every store. */
export function clientNemeses(leaseMs: number): Nemesis[] {
  return [
    pause('clients paused, shorter than a lease', leaseMs, 0.4),
    pause('clients paused, longer than a lease', leaseMs, 1.5),
  ]
}

/** What can happen to clients that are processes of their own. */
export function processNemeses(leaseMs: number): Nemesis[] {
  return [
    {
      // Others take over what they held before they are back.
      name: 'clients killed (`kill -9`)',
      hits: 'clients',
      lastsMs: 1.3 * leaseMs,
      endsHolds: true,
      async begin(crowd, choice) {
        const { victims, holds } = await victimsOf(crowd, choice)
        await Promise.all(victims.map((victim) => crowd.kill(victim)))
        return async () => {
          await Promise.all(victims.map((victim) => crowd.replace(victim)))
          return holds
        }
      },
    },
    {
      name: 'all clients killed, started again after the lease',
      hits: 'clients',
      lastsMs: 1.3 * leaseMs,
      stopsAll: true,
      endsHolds: true,
      async begin(crowd) {
        const all = [...crowd.workers]
        await Promise.all(all.map((victim) => crowd.kill(victim)))
        return () => Promise.all(all.map((victim) => crowd.replace(victim)))
      },
    },
    {
      name: 'rolling restart of the clients',
      hits: 'clients',
      lastsMs: 0,
      async begin(crowd) {
        return slowly(async () => {
          await restartAll(crowd.workers, crowd)
          return async () => {}
        })
      },
    },
  ]
}

/** Some of them run the previous version for a while; none where it is not built. */
export function versionNemeses(leaseMs: number): Nemesis[] {
  if (missingPrevious() !== null) return []
  return [
    {
      name: 'clients of two versions, by rolling updates',
      hits: 'clients',
      lastsMs: leaseMs,
      async begin(crowd, choice) {
        const some = choice.some(crowd.workers)
        return slowly(async () => {
          await restartAll(some, crowd, 'previous')
          return () => restartAll(some, crowd)
        })
      },
    },
  ]
}

/** Of the workers that were started with this clock. */
export function clientClocks(clock: WallClock, leaseMs: number, excuse?: string): Nemesis[] {
  const excused = excuse === undefined ? {} : { excuse, isLossy: true }
  return [
    { ...clientClockJump(clock, leaseMs), ...excused },
    ...clockDrifts('clocks of clients run', clock, leaseMs, () => clock.setRight()).map((drift) => ({
      ...drift,
      ...excused,
    })),
  ]
}

export function clientClockJump(clock: WallClock, leaseMs: number): Nemesis {
  return {
    name: 'wall clocks of clients jump by an hour',
    hits: 'clocks',
    lastsMs: leaseMs,
    async begin(_, choice) {
      clock.set(choice.one([HOUR_S, -HOUR_S]))
      return async () => clock.setRight()
    },
  }
}

/** The monotonic clocks, too. `what`: how the report calls it, such as `clocks of clients run`. */
export function clockDrifts(
  what: string,
  clock: WallClock,
  leaseMs: number,
  heal = () => clock.drift(0),
): Nemesis[] {
  const drift = (how: string, ppm: number): Nemesis => ({
    name: `${what} ${how} by 0.9 %`,
    hits: 'clocks',
    lastsMs: 2 * leaseMs,
    async begin() {
      clock.drift(ppm)
      return async () => heal()
    },
  })
  return [drift('fast', DRIFT_PPM), drift('slow', -DRIFT_PPM)]
}

/**
 * Their connections are cut, and they cannot open new ones. `ports`: of the servers, where no
 * proxies are in front of workers. The other clients lose their connections, too, and come back.
 */
export function clientsWithoutDescriptors(leaseMs: number, ports: readonly number[] = []): Nemesis {
  return {
    name: 'clients out of file descriptors',
    hits: 'clients',
    lastsMs: 1.2 * leaseMs,
    endsHolds: true,
    async begin(crowd, choice) {
      const { victims } = await victimsOf(crowd, choice, ports.length > 0 ? undefined : hasProxies)
      for (const victim of victims) {
        limitDescriptors(victim, '1')
        for (const proxy of victim.way.proxies ?? []) proxy.cut()
      }
      for (const port of ports) resetConnections(port)
      return async () => {
        for (const victim of victims) limitDescriptors(victim, '1024')
      }
    },
  }
}

function pause(name: string, leaseMs: number, leases: number): Nemesis {
  return {
    name,
    hits: 'clients',
    lastsMs: leases * leaseMs,
    endsHolds: leases > 1,
    async begin(crowd, choice) {
      const { victims, holds } = await victimsOf(crowd, choice)
      for (const { child } of victims) child.kill('SIGSTOP')
      return lasting(leases * leaseMs, async () => {
        for (const { child } of victims) child.kill('SIGCONT')
        return holds
      })
    },
  }
}

export function hasProxies({ way }: Worker): boolean {
  return (way.proxies ?? []).length > 0
}

/** Some of the workers, one of them with a fresh hold, and how many holds they have. */
export async function victimsOf(
  crowd: Crowd,
  choice: Choice,
  isFit: (worker: Worker) => boolean = () => true,
): Promise<{ readonly victims: readonly Worker[]; readonly holds: number }> {
  const fit = crowd.workers.filter(isFit)
  const [first, ...others] = choice.some(fit)
  const victims = [...new Set([(await crowd.untilFresh(fit)) ?? (first as Worker), ...others])]
  return { victims, holds: victims.reduce((sum, { open }) => sum + open.size, 0) }
}

async function restartAll(workers: readonly Worker[], crowd: Crowd, version?: Version): Promise<void> {
  for (const worker of workers) await crowd.restart(worker, version)
}

function limitDescriptors({ child }: Worker, soft: string): void {
  execFileSync('prlimit', ['--pid', String(child.pid), `--nofile=${soft}:`])
}
