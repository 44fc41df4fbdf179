import { setImmediate } from 'node:timers'
import { type Cancel, detached } from '../base/env.js'
import { type ProcessOptions, VirtualProcess } from './virtual/process.js'
import { EventQueue, type VirtualEvent } from './virtual/queue.js'
import { randomStream } from './virtual/random.js'

export { type ProcessOptions, VirtualProcess } from './virtual/process.js'

/** The options of `new VirtualWorld()`. */
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

/** Somebody lets time pass, to a moment or until something is done. */
interface Wait {
  readonly endMs: number
  isDone(): boolean
  /** It fails at `endMs`, when it has waited for so long. null: it ends well then. */
  readonly limitMs: number | null
  end(error?: unknown): void
}

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
  /** Each of them lets time pass. */
  readonly #waits: Wait[] = []
  #isTurning = false
  /** Turns of the real event loop in a row in which nothing happened. */
  #idleTurns = 0
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
  run(untilMs: number): Promise<void> {
    return this.#wait({ endMs: untilMs, isDone: () => false, limitMs: null })
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
    await this.#wait({ endMs: this.#timeMs + limitMs, isDone: () => !isPending, limitMs })
    return promise
  }

  #wait(wait: Omit<Wait, 'end'>): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (error?: unknown): void => (error === undefined ? resolve() : reject(error))
      this.#waits.push({ ...wait, end })
      this.#idleTurns = 0
      if (!this.#isTurning) this.#planTurn()
    })
  }

  /**
   * Many steps in one turn of the real event loop, which takes longer than most steps. Before each
   * step every promise reaction has run, however long the chain, and a rejection that nobody
   * handled has been reported: Node does that between two immediates.
   */
  #planTurn(): void {
    this.#isTurning = this.#waits.length > 0
    if (!this.#isTurning) return
    let isIdle = false
    const step = (): void => {
      if (!isIdle && this.#waits.length > 0) isIdle = !this.#step()
    }
    for (let index = 0; index < STEPS_PER_TURN; index++) setImmediate(step)
    setImmediate(() => this.#planTurn())
  }

  /** Whether anything happened. */
  #step(): boolean {
    const done = this.#waits.find((wait) => wait.isDone())
    if (done) return this.#end(done)
    // Nobody finds that more time has passed than it asked for.
    const first = this.#waits.reduce((one, other) => (other.endMs < one.endMs ? other : one))
    try {
      const event = this.#next(first.endMs)
      if (event) {
        this.#idleTurns = 0
        this.#fire(event)
        return true
      }
    } catch (error) {
      return this.#end(this.#waits.at(-1), error)
    }
    const { endMs, limitMs } = first
    if (limitMs === null) {
      this.#timeMs = Math.max(this.#timeMs, endMs)
      return this.#end(first)
    }
    // Something that is not of this world may still settle the promise.
    if (this.#idleTurns++ < MOST_IDLE_TURNS) return false
    return this.#end(first, new Error(`The promise has not settled within ${limitMs} ms of virtual time`))
  }

  #end(wait: Wait | undefined, error?: unknown): true {
    if (wait) this.#waits.splice(this.#waits.indexOf(wait), 1)
    wait?.end(error)
    return true
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
