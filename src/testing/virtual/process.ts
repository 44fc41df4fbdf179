import type { Cancel, Env } from '../../base/env.js'
import type { VirtualEvent } from './queue.js'
import { randomStream } from './random.js'

/** The options of `world.env()`: a new process and its clocks. */
export interface ProcessOptions {
  /** Unlike any other process's of its world; made up if it is not given. */
  name?: string
  /** How much faster its clock runs than true time: 0.001 gains a millisecond each second. */
  driftRate?: number
  /** What its monotonic clock says at true time 0; drawn at random if it is not given. */
  offsetMs?: number
  /** How far its wall clock is ahead of the right one. */
  wallOffsetMs?: number
}

/** What a process needs from its world. */
export interface Surroundings {
  readonly seed: number
  timeMs(): number
  wallMs(): number
  plan(event: Omit<VirtualEvent, 'order'>): Cancel
}

/** One simulated process: its clocks, its randomness and its timers. */
export class VirtualProcess implements Env {
  readonly name: string
  /** May be set at any moment, as wall clocks do jump. */
  wallOffsetMs: number
  readonly #world: Surroundings
  readonly #rate: number
  readonly #offsetMs: number
  readonly #random: () => number
  #late: VirtualEvent[] = []
  #state: 'running' | 'paused' | 'killed' = 'running'
  #idsMade = 0

  constructor(world: Surroundings, name: string, options: ProcessOptions) {
    this.#world = world
    this.name = name
    this.#random = randomStream(world.seed, `process ${name}`)
    this.#rate = 1 + (options.driftRate ?? 0)
    // Whole milliseconds, so that durations stay exact where there is no drift.
    this.#offsetMs = options.offsetMs ?? Math.floor(this.#random() * 1e6)
    this.wallOffsetMs = options.wallOffsetMs ?? 0
  }

  get state(): 'running' | 'paused' | 'killed' {
    return this.#state
  }

  now(): number {
    return this.#localAt(this.#world.timeMs())
  }

  wallMs(): number {
    return this.#world.wallMs() + this.wallOffsetMs
  }

  random(): number {
    return this.#random()
  }

  id(): string {
    this.#idsMade++
    return `${this.name}-${this.#idsMade}`
  }

  keepProcess(): void {}

  letProcessEnd(): void {}

  timer(ms: number, run: () => void, _options: { keepAlive: boolean }): Cancel {
    const due = this.now() + Math.max(0, ms)
    let timeMs = Math.max(this.#world.timeMs(), (due - this.#offsetMs) / this.#rate)
    // Never early by its own clock, whatever the rounding: a deadline reached a moment too soon
    // would be asked for twice.
    while (this.#localAt(timeMs) < due) timeMs += 0.001
    return this.#world.plan({ timeMs, owner: this, kind: 'timer', run })
  }

  /** Lets something from outside happen in this process: now, or after the pause, or never. */
  deliver(run: () => void): void {
    if (this.#state === 'running') run()
    else this.#world.plan({ timeMs: this.#world.timeMs(), owner: this, kind: 'delivery', run })
  }

  /** Stands still, as under SIGSTOP or a long garbage collection, while its clock goes on. */
  pause(): void {
    if (this.#state === 'running') this.#state = 'paused'
  }

  /** Goes on. What was due meanwhile happens now. */
  resume(): void {
    if (this.#state !== 'paused') return
    this.#state = 'running'
    const late = this.#late
    this.#late = []
    // Node runs due timers before it reads its sockets, but a pause can also end between the two:
    // both must be survived.
    if (this.#random() < 0.5) late.sort((a, b) => Number(b.kind === 'timer') - Number(a.kind === 'timer'))
    for (const event of late) {
      // Through the event as it was planned, so that cancelling it still works.
      this.#world.plan({
        timeMs: this.#world.timeMs(),
        owner: this,
        kind: event.kind,
        run: () => event.run?.(),
      })
    }
  }

  /** Dies on the spot: nothing of it ever happens again. */
  kill(): void {
    this.#state = 'killed'
    this.#late = []
  }

  /**
   * Called by the world for an event of this process that is due. Says whether it may happen now.
   */
  admits(event: VirtualEvent): boolean {
    if (this.#state === 'paused') this.#late.push(event)
    return this.#state === 'running'
  }

  #localAt(timeMs: number): number {
    return this.#offsetMs + timeMs * this.#rate
  }
}
