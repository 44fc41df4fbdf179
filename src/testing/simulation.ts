import type { LockOrder } from '../primitives/options.js'
import { memory } from '../stores/memory/index.js'
import { lossyStore } from './network.js'
import type { Mix } from './simulation/lock-choice.js'
import { Simulation } from './simulation/simulation.js'
import type { Tally } from './simulation/witness.js'
import { VirtualWorld } from './virtual-env.js'

export type { Tally } from './simulation/witness.js'

export interface SimulationOptions {
  seed: number
  /** How many processes there are at a time. */
  processes?: number
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

/** The names of the locks that a world uses, as far as it uses so many. */
const NAMES = ['a', 'b', 'c', 'd', 'e']

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
  const { processes, ...rest } = isMixed ? mixedWorld(options, world.stream('mix')) : plainWorld(options)
  const server = world.env({ name: 'server' })
  const network = lossyStore(memory({ env: server }), world, { server })
  const simulation = new Simulation({ world, server, network, ...rest })
  try {
    for (let index = 0; index < processes; index++) simulation.start()
    simulation.misbehave()
    await world.run(faultyMs)
    return await simulation.recover()
  } catch (error) {
    throw new Error(
      `Simulation with seed ${seed} failed at ${world.timeMs} ms: ${(error as Error).message}`,
      { cause: error },
    )
  }
}

interface World {
  readonly processes: number
  readonly tasksPerProcess: number
  readonly order: LockOrder
  readonly resources: readonly string[]
  readonly mix: Mix
}

/** What the options say, and the usual for what they leave out. */
function plainWorld(options: SimulationOptions): World {
  const { processes = 4, tasksPerProcess = 3, order = 'strict', isHot = order === 'cohort' } = options
  const mix = { isHot, isMixed: false, readRate: 0.3, orderRate: 0, lingerRate: 0 }
  return { processes, tasksPerProcess, order, resources: NAMES.slice(0, 2), mix }
}

/** What the options say, and a random draw for what they leave out. */
function mixedWorld(options: SimulationOptions, random: () => number): World {
  const count = (least: number, most: number): number => least + Math.floor(random() * (most - least + 1))
  const [someProcesses, someTasks] = [count(2, 4), count(1, 8)]
  const someOrder = random() < 0.5 ? 'cohort' : 'strict'
  // Few names: waiters meet. Many: locks are free, so that leases linger.
  const resources = NAMES.slice(0, random() < 0.5 ? 1 : count(2, NAMES.length))
  const isHot = random() < 0.7
  // Readers of several processes share a lock for long only where writers are rare.
  const readRate = random() < 0.25 ? 0.98 : random() * 0.9
  const orderRate = random() < 0.5 ? 0 : random()
  const lingerRate = random() < 0.3 ? 0 : random()
  return {
    processes: options.processes ?? someProcesses,
    tasksPerProcess: options.tasksPerProcess ?? someTasks,
    order: options.order ?? someOrder,
    resources,
    mix: { isHot: options.isHot ?? isHot, isMixed: true, readRate, orderRate, lingerRate },
  }
}
