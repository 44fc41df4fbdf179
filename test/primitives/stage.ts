import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { type LossyStore, lossyStore, type VirtualProcess, VirtualWorld } from '../../src/testing/index.js'

/**
 * Far longer than the bad weather: nobody is told that the store is out of reach, so every call has
 * to end well.
 */
const STORE_TIMEOUT = '1h'
const MOST_DRIFT = 0.004

export interface Actor {
  readonly name: string
  readonly process: VirtualProcess
  readonly locks: Holdfast
}

/**
 * Some processes with a bad network between them and a store, in virtual time. The same seed, the
 * same history.
 */
export class Stage {
  readonly world: VirtualWorld
  readonly actors: readonly Actor[]
  readonly random: () => number
  readonly #server: VirtualProcess
  readonly #network: LossyStore
  readonly #checks: (() => void)[] = []
  #isCalm = false

  constructor(seed: number, actors: number) {
    this.world = new VirtualWorld({ seed })
    this.random = this.world.stream('faults')
    this.#server = this.world.env({ name: 'server' })
    this.#network = lossyStore(memory({ env: this.#server }), this.world, { server: this.#server })
    this.actors = Array.from({ length: actors }, (_, index) => this.#actor(`p${index}`))
  }

  #actor(name: string): Actor {
    const process = this.world.env({ name, driftRate: (this.random() * 2 - 1) * MOST_DRIFT })
    const locks = new Holdfast(this.#network.from(process), { env: process, storeTimeout: STORE_TIMEOUT })
    return { name, process, locks }
  }

  /** Looked at again and again while time passes. */
  always(check: () => void): void {
    this.#checks.push(check)
  }

  pause({ process }: Actor, ms: number): Promise<void> {
    return new Promise((resolve) => {
      process.timer(ms, resolve, { keepAlive: true })
    })
  }

  /** Lets the work go on through bad weather, and to its end after that. */
  async play<T>(work: Promise<T>, badMs: number): Promise<T> {
    work.catch(() => {})
    this.#misbehave()
    await this.world.run(badMs)
    this.#isCalm = true
    this.#network.heal()
    for (const { process } of this.actors) process.resume()
    this.#server.resume()
    return this.world.until(work, 600_000)
  }

  #misbehave(): void {
    for (const check of this.#checks) check()
    if (!this.#isCalm && this.random() < 0.1) this.#fault()
    this.world.after(20, () => this.#misbehave())
  }

  #fault(): void {
    const actor = this.actors[Math.floor(this.random() * this.actors.length)]
    const kind = this.random()
    const ms = this.random() * 4000
    if (!actor || kind < 0.1) this.#pauseFor(this.#server, ms / 4)
    else if (kind < 0.45) this.#pauseFor(actor.process, ms)
    else if (kind < 0.65) this.#cutFor(actor.process, ms)
    else this.#network.set(this.#weather())
  }

  #pauseFor(process: VirtualProcess, ms: number): void {
    process.pause()
    this.world.after(ms, () => process.resume())
  }

  #cutFor(process: VirtualProcess, ms: number): void {
    const cuts = ['both', 'requests', 'replies'] as const
    this.#network.partition(process, cuts[Math.floor(this.random() * cuts.length)] ?? 'both')
    this.world.after(ms, () => this.#network.mend(process))
  }

  #weather(): Parameters<LossyStore['set']>[0] {
    const isBad = this.random() < 0.6
    const rate = (most: number): number => (isBad ? this.random() * most : 0)
    return {
      lossRate: rate(0.3),
      pushLossRate: rate(0.8),
      doubleRate: rate(0.3),
      lateRate: rate(0.2),
      hangRate: rate(0.3),
    }
  }
}
