import assert from 'node:assert/strict'
import { Holdfast } from '../../primitives/holdfast.js'
import type { LockOrder } from '../../primitives/options.js'
import type { VirtualProcess, VirtualWorld } from '../virtual-env.js'
import { type Backend, MOST_DRIFT, pauseFor } from './backend.js'
import type { Mix } from './lock-choice.js'
import { rollCall } from './roll-call.js'
import { type Tally, Witness } from './witness.js'
import { work } from './worker.js'

/**
 * Longer than every lease, presence, maxHold, wait, delay and timeout of the simulated work
 * together.
 */
const CALM_MS = 120_000

interface SimulationContext {
  readonly world: VirtualWorld
  /** Random numbers for the faults. */
  readonly random: () => number
  readonly backend: Backend
  /** The lease of holds that ask for none. Default: the client's default. */
  readonly lease?: number
  readonly tasksPerProcess: number
  readonly order: LockOrder
  readonly resources: readonly string[]
  readonly mix: Mix
}

interface Life {
  readonly seed: number
  /** How many processes there are at a time. */
  readonly processes: number
  /** How long faults happen. */
  readonly faultyMs: number
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
    this.#random = context.random
  }

  /** The life of this world: faults, then recovery. A failure names the seed. */
  async run({ seed, processes, faultyMs }: Life): Promise<Tally> {
    const { world } = this.#context
    try {
      for (let index = 0; index < processes; index++) this.#start()
      this.#misbehave()
      await world.run(faultyMs)
      return await this.#recover()
    } catch (error) {
      throw new Error(
        `Simulation with seed ${seed} failed at ${world.timeMs} ms: ${(error as Error).message}`,
        { cause: error },
      )
    }
  }

  #start(): void {
    const { world, backend, order, lease, resources, mix, tasksPerProcess } = this.#context
    const driftRate = (this.#random() * 2 - 1) * MOST_DRIFT
    const process = world.env({ name: `p${++this.#started}`, driftRate })
    const locks = new Holdfast(backend.from(process), { env: process, storeTimeout: '4s', order, lease })
    const isOver = (): boolean => this.#isCalm
    const context = { process, locks, witness: this.witness, resources, mix, isOver }
    const done = Promise.all(Array.from({ length: tasksPerProcess }, () => work(context)))
    // Awaited in the end; until then a failure must not count as unhandled.
    done.catch(() => {})
    this.#running.push({ process, locks, done })
  }

  /** Faults at random moments until it is calm. The witness looks every now and then. */
  #misbehave(): void {
    this.witness.check()
    if (this.#isCalm) return
    if (this.#random() < 0.1) this.#fault()
    this.#context.world.after(20, () => this.#misbehave())
  }

  #fault(): void {
    const { backend, world } = this.#context
    const { process } = this.#running[Math.floor(this.#random() * this.#running.length)] ?? {}
    const kind = this.#random()
    const forMs = this.#random() * 4000
    if (!process || kind < 0.15) backend.disturb(forMs)
    else if (kind < 0.5) pauseFor(world, process, forMs)
    else if (kind < 0.7) backend.cutFor(process, forMs)
    else if (kind < 0.75) this.#replace(process)
    else backend.changeWeather()
  }

  #replace(process: VirtualProcess): void {
    process.kill()
    this.#running.splice(
      this.#running.findIndex((each) => each.process === process),
      1,
    )
    this.#start()
  }

  /**
   * Ends all faults. Then every task must end, every waiter be served, and nothing be left in the
   * store. Gives what the tasks came to.
   */
  async #recover(): Promise<Tally> {
    const { world, backend, resources, lease } = this.#context
    this.#heal()
    const staying = await world.until(this.#endTasks(), CALM_MS)
    const tally = { ...this.witness.tally }
    await world.run(world.timeMs + CALM_MS)
    await rollCall(world, this.witness, staying, { resources, lease })
    if (backend.weaken) {
      backend.weaken()
      await rollCall(world, this.witness, staying, { resources, lease })
      backend.heal()
      await world.run(world.timeMs + CALM_MS)
    }
    await world.until(Promise.all(staying.map(({ locks }) => locks.close())), CALM_MS)
    assert.deepEqual(await world.until(backend.leftOver()), [], 'lines are left over')
    return tally
  }

  #heal(): void {
    this.#isCalm = true
    this.#context.backend.heal()
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
}
