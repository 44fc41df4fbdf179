import { type QuorumTally, runQuorumWorld } from './simulation/quorum.js'
import type { SimulationOptions } from './simulation.js'

export type { QuorumTally } from './simulation/quorum.js'

/** The options of `simulateQuorum`. */
export interface QuorumSimulationOptions extends SimulationOptions {
  /** How many servers there are. Default: 3 or 5, by the seed. */
  members?: 3 | 5
}

/**
 * Runs many clients of a quorum store in virtual time. Each member is a server of its own, with its
 * own clocks, behind its own bad network. Members pause, restart and lose their data, and
 * connections break; the clients pause and die. Checks the same as `simulate`.
 *
 * @example
 * ```ts
 * import { simulateQuorum } from 'holdfast/testing'
 *
 * for (let seed = 1; seed <= 100; seed++) await simulateQuorum({ seed })
 * ```
 */
export function simulateQuorum(options: QuorumSimulationOptions): Promise<QuorumTally> {
  return runQuorumWorld(options, {})
}
