import type { LockOrder } from '../primitives/options.js'
import { mixedLoad, plainLoad } from './simulation/load.js'
import { Simulation } from './simulation/simulation.js'
import { SingleServer } from './simulation/single-server.js'
import type { Tally } from './simulation/witness.js'
import { VirtualWorld } from './virtual-env.js'

export type { Tally } from './simulation/witness.js'

/** The options of `simulate`. */
export interface SimulationOptions {
  /** Everything random follows from it. */
  seed: number
  /** How many processes there are at a time. */
  processes?: number
  /** How many tasks of each process take locks at a time. */
  tasksPerProcess?: number
  /** How long faults happen, in virtual time. */
  faultyMs?: number
  /** How the locks serve their waiters, unless a lock says otherwise. Default `'strict'`. */
  order?: LockOrder
  /**
   * Whether tasks ask for the same lock again and again, mostly with the same options. Default:
   * with `'cohort'`.
   */
  isHot?: boolean
  /**
   * Whether the world draws the options above from its seed, and each use of a lock its own:
   * readers and writers, both orders, lingering leases, downgrades. Options that are given still
   * count. Default: no.
   */
  isMixed?: boolean
}

/**
 * Runs many clients of the engine in virtual time, against a store behind a bad network. Processes
 * pause and die, and their clocks drift. Fails when two processes take holds for valid that exclude
 * each other, when a fence does not grow, when an error without a code surfaces, or when a waiter
 * is not served after everything has healed. The same seed gives the same history.
 *
 * @example
 * ```ts
 * import { simulate } from 'holdfast/testing'
 *
 * for (let seed = 1; seed <= 100; seed++) await simulate({ seed })
 * ```
 */
export async function simulate(options: SimulationOptions): Promise<Tally> {
  const world = new VirtualWorld({ seed: options.seed })
  const { seed, faultyMs = 15_000, isMixed = false } = options
  const { processes, ...load } = isMixed ? mixedLoad(options, world.stream('mix')) : plainLoad(options)
  const random = world.stream('faults')
  const backend = new SingleServer({ world, random, isMixed })
  const simulation = new Simulation({ world, random, backend, ...load })
  return simulation.run({ seed, processes, faultyMs })
}
