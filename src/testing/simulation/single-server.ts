import type { Store } from '../../contract/store.js'
import { Holdfast } from '../../primitives/holdfast.js'
import { memory } from '../../stores/memory/index.js'
import { type LossyStore, lossyStore } from '../network.js'
import type { VirtualProcess, VirtualWorld } from '../virtual-env.js'
import { type Backend, LATENCY_MS, pauseFor, randomCut, randomWeather } from './backend.js'

interface SingleServerContext {
  readonly world: VirtualWorld
  readonly random: () => number
  readonly isMixed: boolean
}

/** How often clients ask for their turn, where the world says that pushes cannot be relied on. */
const ASK_NEXT_EVERY_MS = 10

/** One server with a memory store, behind a bad network. */
export class SingleServer implements Backend {
  readonly #context: SingleServerContext
  readonly #server: VirtualProcess
  readonly #network: LossyStore
  readonly #asksForTurns: boolean

  constructor(context: SingleServerContext) {
    const { world } = context
    this.#context = context
    this.#server = world.env({ name: 'server' })
    this.#network = lossyStore(memory({ env: this.#server }), world, { server: this.#server })
    this.#asksForTurns = context.isMixed && world.stream('store')() < 0.5
  }

  from(process: VirtualProcess): Store {
    const store = this.#network.from(process)
    if (!this.#asksForTurns) return store
    return { ...store, capabilities: { ...store.capabilities, askNextEveryMs: ASK_NEXT_EVERY_MS } }
  }

  disturb(forMs: number): void {
    pauseFor(this.#context.world, this.#server, forMs / 4)
  }

  cutFor(process: VirtualProcess, ms: number): void {
    this.#network.partition(process, randomCut(this.#context.random))
    this.#context.world.after(ms, () => this.#network.mend(process))
  }

  changeWeather(): void {
    const { random, isMixed } = this.#context
    this.#network.set(randomWeather(random, isMixed))
  }

  heal(): void {
    this.#network.heal()
    this.#network.set({ latencyMs: LATENCY_MS })
    this.#server.resume()
  }

  async leftOver(): Promise<string[]> {
    const auditor = this.#context.world.env({ name: 'auditor' })
    const locks = new Holdfast(this.from(auditor), { env: this.#server })
    const names: string[] = []
    for await (const resource of locks.inspect()) names.push(resource.name)
    await locks.close()
    return names
  }
}
