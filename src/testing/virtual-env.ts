import { setImmediate } from 'node:timers'
import { type Cancel, detached } from '../base/env.js'
import { type ProcessOptions, VirtualProcess } from './virtual/process.js'
import { EventQueue, type VirtualEvent } from './virtual/queue.js'
import { randomStream } from './virtual/random.js'

export { type ProcessOptions, VirtualProcess } from './virtual/process.js'

export interface WorldOptions {
  /** Everything random in this world follows from it. */
  seed: number
  /** The wall clock at true time 0. */
  wallStartMs?: number
}

/** More events than this at one moment are taken for a loop that will never let time go on. */
const MOST_AT_ONE_MOMENT = 100_000
const MOST_IDLE_TURNS = 10
/** Steps of the world in one turn of the real event loop. */
const STEPS_PER_TURN = 64

/**
 * A world with its own time. Nothing in it waits: time jumps from event to event, so that hours of
 * simulated work take seconds, and the same seed gives the same history.
 *
 * @example
 * ```ts
 * import { memory } from 'holdfast/memory'
 * import { VirtualWorld } from 'holdfast/testing'
 *
 * const world = new VirtualWorld({ seed: 42 })
 * const store = memory({ env: world.env({ name: 'server' }) })
 * const worker = world.env({ name: 'worker', driftRate: 0.0001 })
 * worker.timer(5_000, () => console.log('five seconds later', store.name), { keepAlive: true })
 * await world.run(60_000)
 * ```
 */
export class VirtualWorld {
  readonly seed: number
  readonly #wallStartMs: number
  readonly #events = new EventQueue()
  readonly #random: () => number
  readonly #names = new Set<string>()
  #timeMs = 0
  #firedAtThisMoment = 0

  constructor(options: WorldOptions) {
    this.seed = options.seed
    this.#wallStartMs = options.wallStartMs ?? Date.UTC(2030, 0)
    this.#random = this.stream('world')
  }

  /** True time in milliseconds, which no process can see. */
  get timeMs(): number {
    return this.#timeMs
  }

  random(): number {
    return this.#random()
  }

  /** A stream of random numbers of its own: drawing from it changes nobody else's numbers. */
  stream(name: string): () => number {
    return randomStream(this.seed, name)
  }

  /** A new process of this world. */
  env(options: ProcessOptions = {}): VirtualProcess {
    const name = options.name ?? `process${this.#names.size + 1}`
    if (this.#names.has(name)) throw new Error(`This world has a process '${name}' already`)
    this.#names.add(name)
    const surroundings = {
      seed: this.seed,
      timeMs: () => this.#timeMs,
      wallMs: () => this.#wallStartMs + this.#timeMs,
      plan: (event: Omit<VirtualEvent, 'order'>) => this.#events.add(event),
    }
    return new VirtualProcess(surroundings, name, options)
  }

  /** Plans something that happens in the world itself, such as a packet's arrival or a fault. */
  after(ms: number, run: () => void): Cancel {
    return this.#events.add({ timeMs: this.#timeMs + Math.max(0, ms), owner: null, kind: 'delivery', run })
  }

  /**
   * Lets time pass at once: fires what is due, but gives promises no chance to react. For code
   * without promises.
   */
  advanceTo(timeMs: number): void {
    for (let event = this.#next(timeMs); event; event = this.#next(timeMs)) this.#fire(event)
    this.#timeMs = Math.max(this.#timeMs, timeMs)
  }

  /**
   * Lets time pass until then: fires what is due in order, and lets every promise reaction settle
   * before the next event.
   */
  async run(untilMs: number): Promise<void> {
    await turns(() => {
      const event = this.#next(untilMs)
      if (event) this.#fire(event)
      return event !== undefined
    })
    this.#timeMs = Math.max(this.#timeMs, untilMs)
  }

  /**
   * Lets time pass until the promise settles, and gives its value. Fails when it has not settled
   * within `limitMs`.
   */
  async until<T>(promise: Promise<T>, limitMs = 86_400_000): Promise<T> {
    let isPending = true
    const note = (): void => {
      isPending = false
    }
    promise.then(note, note)
    const endMs = this.#timeMs + limitMs
    let idle = 0
    await turns(() => {
      if (!isPending) return false
      const event = this.#next(endMs)
      idle = event ? 0 : idle + 1
      // Where one wait is inside another, the inner one has fired the last event, and takes a turn
      // or two to return.
      if (idle > MOST_IDLE_TURNS)
        throw new Error(`The promise has not settled within ${limitMs} ms of virtual time`)
      if (event) this.#fire(event)
      return true
    })
    return promise
  }

  #next(untilMs: number): VirtualEvent | undefined {
    for (;;) {
      const event = this.#events.take(untilMs)
      if (!event) return undefined
      this.#countMoment(event.timeMs)
      this.#timeMs = Math.max(this.#timeMs, event.timeMs)
      if (!event.owner || event.owner.admits(event)) return event
    }
  }

  #fire(event: VirtualEvent): void {
    const { run } = event
    // Fired is done: cancelling it later must not count.
    event.run = null
    if (run) detached(run)
  }

  #countMoment(timeMs: number): void {
    this.#firedAtThisMoment = timeMs > this.#timeMs ? 0 : this.#firedAtThisMoment + 1
    if (this.#firedAtThisMoment > MOST_AT_ONE_MOMENT)
      throw new Error(`More than ${MOST_AT_ONE_MOMENT} events at ${timeMs} ms: something spins`)
  }
}

/**
 * Takes step after step until one says that it was the last. Before each step every promise
 * reaction has run, however long the chain, and a rejection that nobody handled has been reported:
 * Node does that between two immediates. Many are planned at once, because a turn of the real event
 * loop takes longer than most steps.
 */
function turns(step: () => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    let isOver = false
    const turn = (): void => {
      if (isOver) return
      try {
        if (step()) return
        resolve()
      } catch (error) {
        reject(error)
      }
      isOver = true
    }
    const plan = (): void => {
      if (isOver) return
      for (let index = 0; index < STEPS_PER_TURN; index++) setImmediate(turn)
      setImmediate(plan)
    }
    plan()
  })
}
