import { dropPackets, type PacketLoss, packetLossAvailability } from '../../test/servers/packet-loss.js'
import type { ProxyMode } from '../../test/servers/proxy.js'
import type { Choice, Nemesis } from '../nemesis.js'
import { hasProxies, victimsOf } from './clients.js'
import { resetConnections } from './connections.js'

const LOST = 0.3

/** Of the workers that reach the servers through proxies. */
export function proxyNemeses(leaseMs: number): Nemesis[] {
  return [
    way('clients cut off (stall)', 'stall', leaseMs, 1.3),
    way('clients cut off, one way (replies lost)', 'lose replies', leaseMs, 1.3),
    way('clients cut off (refused)', 'refuse', leaseMs, 0.6),
  ]
}

/** Of all clients; `ports`: of the servers that are hit, which are all or some of them. */
export function packetNemeses(
  leaseMs: number,
  which: 'all servers' | 'some servers',
  ports: (choice: Choice) => Promise<readonly number[]>,
): Nemesis[] {
  const drop = (name: string, share: number, direction: 'both' | 'to' | 'from'): Nemesis => ({
    name,
    hits: 'network',
    lastsMs: 1.2 * leaseMs,
    stopsAll: share === 1 && which === 'all servers',
    endsHolds: share === 1 && which === 'all servers',
    async begin(_, choice) {
      const cuts: PacketLoss[] = []
      for (const port of await ports(choice)) cuts.push(await dropPackets(port, share, undefined, direction))
      return async () => cuts.reduce((count, cut) => count + cut.heal(), 0)
    },
  })
  const reset: Nemesis = {
    name: 'connections reset, again and again',
    hits: 'network',
    lastsMs: leaseMs,
    async begin(_, choice) {
      const all = await ports(choice)
      let count = 0
      const reset = (port: number): void => {
        count += resetConnections(port)
      }
      const resetting = setInterval(() => all.forEach(reset), leaseMs / 10)
      return async () => {
        clearInterval(resetting)
        return count
      }
    },
  }
  if (packetLossAvailability() !== null) return [reset]
  return [
    reset,
    drop('30 % of packets lost', LOST, 'both'),
    drop('all packets lost', 1, 'both'),
    drop('packets to the server lost', 1, 'to'),
    drop('packets from the server lost', 1, 'from'),
  ]
}

function way(name: string, mode: ProxyMode, leaseMs: number, leases: number): Nemesis {
  return {
    name,
    hits: 'network',
    lastsMs: leases * leaseMs,
    endsHolds: leases > 1,
    async begin(crowd, choice) {
      const { victims } = await victimsOf(crowd, choice, hasProxies)
      const proxies = victims.flatMap((worker) => worker.way.proxies ?? [])
      for (const proxy of proxies) proxy.mode = mode
      return async () => {
        for (const proxy of proxies) proxy.mode = 'pass'
      }
    },
  }
}
