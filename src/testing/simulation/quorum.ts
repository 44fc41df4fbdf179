import { VirtualWorld } from '../virtual-env.js'
import { LATENCY_MS } from './backend.js'
import { type LoadOptions, mixedLoad, plainLoad } from './load.js'
import { MemberServers, type MemberTerms, type PlantedFault } from './members/backend.js'
import type { MemberTally } from './members/ledger.js'
import { Simulation } from './simulation.js'
import type { Tally } from './witness.js'

/** What happened in a simulation of a quorum. */
export type QuorumTally = Tally & MemberTally

interface QuorumWorldOptions extends LoadOptions {
  seed: number
  members?: 3 | 5
  faultyMs?: number
  isMixed?: boolean
}

/** A little more than the longest lease that the simulated work asks for. */
const LONGEST_LEASE_MS = 2_500
/** The lease of holds that ask for none. */
const USUAL_LEASE_MS = 2_000
const USUAL_FAULTY_MS = 10_000
/** Half of the worlds have a fast network, and most have more faults of members than others. */
const LATENCIES_MS = [LATENCY_MS, LATENCY_MS, [1, 40], [5, 120]] as const
const DISTURBANCES = [1, 2, 4, 8]

/** The world of a seed, with a fault that is built into it on purpose or none. */
export async function runQuorumWorld(
  options: QuorumWorldOptions,
  planted: PlantedFault,
): Promise<QuorumTally> {
  const { seed, faultyMs = USUAL_FAULTY_MS, isMixed = false } = options
  const world = new VirtualWorld({ seed })
  const { processes, ...load } = isMixed ? mixedLoad(options, world.stream('mix')) : plainLoad(options)
  const random = world.stream('faults')
  const terms = memberTerms(options.members, world.stream('members'))
  const backend = new MemberServers({ world, random, isMixed, planted, ...terms })
  const simulation = new Simulation({ world, random, backend, lease: USUAL_LEASE_MS, ...load })
  const tally = await simulation.run({ seed, processes, faultyMs })
  return { ...tally, ...backend.ledger.total() }
}

/**
 * In half of the worlds the clocks are nearly right, and members may lose everything. In the others
 * the clocks are far off, so that only the counters keep the fences in order.
 */
function memberTerms(members: 3 | 5 | undefined, random: () => number): MemberTerms {
  const drawn = random() < 0.6 ? 3 : 5
  const terms = {
    members: members ?? drawn,
    longestLeaseMs: LONGEST_LEASE_MS,
    isSplit: random() < 0.4,
    disturbedAtOnce: DISTURBANCES[Math.floor(random() * DISTURBANCES.length)] ?? 1,
    latencyMs: LATENCIES_MS[Math.floor(random() * LATENCIES_MS.length)] ?? LATENCY_MS,
  }
  if (random() < 0.5) return { ...terms, skewMs: 300, kept: ['all', 'states', 'counter', 'nothing'] }
  return { ...terms, skewMs: 5_000, kept: ['all', 'states', 'counter'] }
}
