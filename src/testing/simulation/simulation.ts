import assert from 'node:assert/strict'
import { Holdfast } from '../../primitives/holdfast.js'
import type { LockOrder } from '../../primitives/options.js'
import type { LossyStore } from '../network.js'
import type { VirtualProcess, VirtualWorld } from '../virtual-env.js'
import type { Mix } from './lock-choice.js'
import { rollCall } from './roll-call.js'
import { type Tally, Witness } from './witness.js'
import { work } from './worker.js'

/** The clock of a process may run at most this much off, well within what the engine allows for. */
const MOST_DRIFT = 0.004
/**
 * Longer than every lease, presence, maxHold, wait, delay and timeout of the simulated work
 * together.
 */
const CALM_MS = 120_000
/** The least and the most that a message takes. In a slow network of a mixed world it is more. */
const LATENCY_MS = [0.2, 3] as const
const SLOW_MS = 300

interface SimulationContext {
  readonly world: VirtualWorld
  readonly server: VirtualProcess
  readonly network: LossyStore
  readonly tasksPerProcess: number
  readonly order: LockOrder
  readonly resources: readonly string[]
  readonly mix: Mix
}

interface Running {
  readonly process: VirtualProcess
  readonly locks: Holdfast
  /** Its tasks are over. */
  readonly done: Promise<unknown>
}

/** The processes of one world, what befalls them, and the checks in the end. */
export class Simulation {
  readonly witness = new Witness()
  readonly #context: SimulationContext
  readonly #random: () => number
  readonly #running: Running[] = []
  #started = 0
  #isCalm = false

  constructor(context: SimulationContext) {
    this.#context = context
    this.#random = context.world.stream('faults')
  }

  start(): void {
    const { world, network, order, resources, mix, tasksPerProcess } = this.#context
    const driftRate = (this.#random() * 2 - 1) * MOST_DRIFT
    const process = world.env({ name: `p${++this.#started}`, driftRate })
    const locks = new Holdfast(network.from(process), { env: process, storeTimeout: '4s', order })
    const isOver = (): boolean => this.#isCalm
    const context = { process, locks, witness: this.witness, resources, mix, isOver }
    const done = Promise.all(Array.from({ length: tasksPerProcess }, () => work(context)))
    // Awaited in the end; until then a failure must not count as unhandled.
    done.catch(() => {})
    this.#running.push({ process, locks, done })
  }

  /** Faults at random moments until it is calm. The witness looks every now and then. */
  misbehave(): void {
    this.witness.check()
    if (this.#isCalm) return
    if (this.#random() < 0.1) this.#fault()
    this.#context.world.after(20, () => this.misbehave())
  }

  #fault(): void {
    const { process } = this.#running[Math.floor(this.#random() * this.#running.length)] ?? {}
    const kind = this.#random()
    const forMs = this.#random() * 4000
    if (!process || kind < 0.15) this.#pauseFor(this.#context.server, forMs / 4)
    else if (kind < 0.5) this.#pauseFor(process, forMs)
    else if (kind < 0.7) this.#cutFor(process, forMs)
    else if (kind < 0.75) this.#replace(process)
    else this.#context.network.set(this.#weather())
  }

  #pauseFor(process: VirtualProcess, ms: number): void {
    process.pause()
    this.#context.world.after(ms, () => process.resume())
  }

  #cutFor(process: VirtualProcess, ms: number): void {
    const { network, world } = this.#context
    const cuts = ['both', 'requests', 'replies'] as const
    network.partition(process, cuts[Math.floor(this.#random() * cuts.length)] ?? 'both')
    world.after(ms, () => network.mend(process))
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
      ...(this.#context.mix.isMixed ? { latencyMs: [LATENCY_MS[0], LATENCY_MS[1] + rate(SLOW_MS)] } : {}),
    }
  }

  /**
   * Ends all faults. Then every task must end, every waiter be served, and nothing be left in the
   * store. Gives what the tasks came to.
   */
  async recover(): Promise<Tally> {
    const { world, resources } = this.#context
    this.#heal()
    const staying = await world.until(this.#endTasks(), CALM_MS)
    const tally = { ...this.witness.tally }
    await world.run(world.timeMs + CALM_MS)
    await rollCall(world, this.witness, staying, resources)
    await world.until(Promise.all(staying.map(({ locks }) => locks.close())), CALM_MS)
    await this.#expectEmptyLines()
    return tally
  }

  #heal(): void {
    this.#isCalm = true
    this.#context.network.heal()
    this.#context.network.set({ latencyMs: LATENCY_MS })
    this.#context.server.resume()
    for (const { process } of this.#running) process.resume()
  }

  /**
   * Waits for all tasks. Some processes then close while others still work; gives those that stay.
   */
  async #endTasks(): Promise<Running[]> {
    const staying: Running[] = []
    const leaving: Promise<void>[] = []
    const end = async (running: Running, stays: boolean): Promise<void> => {
      const { process, locks, done } = running
      await done.catch((error: Error) => assert.fail(`${process.name}: ${error.stack}`))
      if (stays) staying.push(running)
      else await locks.close()
    }
    for (const [index, running] of this.#running.entries())
      leaving.push(end(running, index === 0 || this.#random() < 0.5))
    await Promise.all(leaving)
    return staying
  }

  async #expectEmptyLines(): Promise<void> {
    const { network, server, world } = this.#context
    const locks = new Holdfast(network.from(world.env({ name: 'auditor' })), { env: server })
    const audit = async (): Promise<string[]> => {
      const names: string[] = []
      for await (const resource of locks.inspect()) names.push(resource.name)
      return names
    }
    assert.deepEqual(await world.until(audit()), [], 'lines are left over')
    await world.until(locks.close())
  }
}
