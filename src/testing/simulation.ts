import assert from 'node:assert/strict'
import { Holdfast } from '../primitives/holdfast.js'
import type { LockOrder } from '../primitives/options.js'
import { memory } from '../stores/memory/index.js'
import { type LossyStore, lossyStore } from './network.js'
import { type Tally, Witness } from './simulation/witness.js'
import { work } from './simulation/worker.js'
import { type VirtualProcess, VirtualWorld } from './virtual-env.js'

export type { Tally } from './simulation/witness.js'

export interface SimulationOptions {
  seed: number
  /** How many processes there are at a time. */
  processes?: number
  tasksPerProcess?: number
  /** How long faults happen, in virtual time. */
  faultyMs?: number
  /** How the locks serve those who wait. Default `'strict'`. */
  order?: LockOrder
  /** Whether tasks mostly ask for the same, again and again, so that neighbours follow each other. Default: with `'cohort'`. */
  isHot?: boolean
}

/** The clock of a process may run at most this much off, well within what the engine allows for. */
const MOST_DRIFT = 0.004
const RESOURCES = ['a', 'b']
/** Longer than every lease, presence, maxHold, wait and store time-out of the simulated work together. */
const CALM_MS = 120_000

/**
 * Runs many clients of the engine against a store behind a bad network, with processes that pause, die and have clocks that
 * drift, in virtual time. Fails when two processes believe to hold the same mutex at one moment, when a fence does not grow, when
 * an error without a code surfaces, or when somebody is stranded after everything has healed. The same seed, the same history.
 *
 * @example
 * ```ts
 * import { simulate } from 'holdfast/testing'
 *
 * for (let seed = 1; seed <= 100; seed++) await simulate({ seed })
 * ```
 */
export async function simulate(options: SimulationOptions): Promise<Tally> {
  const { seed, processes = 4, tasksPerProcess = 3, faultyMs = 15_000, order = 'strict' } = options
  const isHot = options.isHot ?? order === 'cohort'
  const world = new VirtualWorld({ seed })
  const server = world.env({ name: 'server' })
  const network = lossyStore(memory({ env: server }), world, { server })
  const simulation = new Simulation(world, server, network, { tasksPerProcess, faultyMs, order, isHot })
  try {
    for (let index = 0; index < processes; index++) simulation.start()
    simulation.misbehave()
    await world.run(faultyMs)
    simulation.heal()
    await world.until(simulation.allDone(), CALM_MS)
    await simulation.expectEmptyLines()
  } catch (error) {
    throw new Error(
      `Simulation with seed ${seed} failed at ${world.timeMs} ms: ${(error as Error).message}`,
      { cause: error },
    )
  }
  return simulation.witness.tally
}

class Simulation {
  readonly witness = new Witness()
  readonly #random: () => number
  readonly #running: { process: VirtualProcess; done: Promise<unknown> }[] = []
  #started = 0
  #isCalm = false

  constructor(
    readonly world: VirtualWorld,
    readonly server: VirtualProcess,
    readonly network: LossyStore,
    readonly options: Required<Pick<SimulationOptions, 'tasksPerProcess' | 'faultyMs' | 'order' | 'isHot'>>,
  ) {
    this.#random = world.stream('faults')
  }

  start(): void {
    const driftRate = (this.#random() * 2 - 1) * MOST_DRIFT
    const process = this.world.env({ name: `p${++this.#started}`, driftRate })
    const { order, isHot, tasksPerProcess } = this.options
    const locks = new Holdfast(this.network.from(process), { env: process, storeTimeout: '4s', order })
    const context = {
      process,
      locks,
      witness: this.witness,
      resources: RESOURCES,
      isHot,
      isOver: () => this.#isCalm,
    }
    const tasks = Array.from({ length: tasksPerProcess }, () => work(context))
    const done = Promise.all(tasks).then(() => locks.close())
    // Looked at in the end; until then nobody awaits it.
    done.catch(() => {})
    this.#running.push({ process, done })
  }

  /** Faults at random moments, for as long as it is not calm; and the witness looks every now and then. */
  misbehave(): void {
    this.witness.check()
    if (this.#isCalm) return
    if (this.#random() < 0.1) this.#fault()
    this.world.after(20, () => this.misbehave())
  }

  #fault(): void {
    const { process } = this.#running[Math.floor(this.#random() * this.#running.length)] ?? {}
    const kind = this.#random()
    const forMs = this.#random() * 4000
    if (!process || kind < 0.15) this.#pauseFor(this.server, forMs / 4)
    else if (kind < 0.5) this.#pauseFor(process, forMs)
    else if (kind < 0.7) this.#cutFor(process, forMs)
    else if (kind < 0.75) this.#replace(process)
    else this.network.set(this.#weather())
  }

  #pauseFor(process: VirtualProcess, ms: number): void {
    process.pause()
    this.world.after(ms, () => process.resume())
  }

  #cutFor(process: VirtualProcess, ms: number): void {
    const cuts = ['both', 'requests', 'replies'] as const
    this.network.partition(process, cuts[Math.floor(this.#random() * cuts.length)] ?? 'both')
    this.world.after(ms, () => this.network.mend(process))
  }

  #replace(process: VirtualProcess): void {
    process.kill()
    this.#running.splice(
      this.#running.findIndex((each) => each.process === process),
      1,
    )
    this.start()
  }

  #weather(): Parameters<LossyStore['set']>[0] {
    const isBad = this.#random() < 0.5
    const rate = (most: number): number => (isBad ? this.#random() * most : 0)
    return {
      lossRate: rate(0.3),
      pushLossRate: rate(0.8),
      doubleRate: rate(0.3),
      lateRate: rate(0.2),
      hangRate: rate(0.5),
    }
  }

  heal(): void {
    this.#isCalm = true
    this.network.heal()
    this.server.resume()
    for (const { process } of this.#running) process.resume()
  }

  async allDone(): Promise<void> {
    for (const { process, done } of this.#running) {
      await done.catch((error: Error) => assert.fail(`${process.name}: ${error.stack}`))
    }
  }

  /** After everybody is gone, and what messages still under way left behind has lapsed, nothing is left in the store. */
  async expectEmptyLines(): Promise<void> {
    await this.world.run(this.world.timeMs + CALM_MS)
    const locks = new Holdfast(this.network.from(this.world.env({ name: 'auditor' })), { env: this.server })
    const audit = async (): Promise<string[]> => {
      const names: string[] = []
      for await (const resource of locks.inspect()) names.push(resource.name)
      return names
    }
    assert.deepEqual(await this.world.until(audit()), [], 'lines are left over')
    await this.world.until(locks.close())
  }
}
