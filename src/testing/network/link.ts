import type { VirtualProcess, VirtualWorld } from '../virtual-env.js'

/** How a network misbehaves. Rates are from 0 (never) to 1 (always). */
export interface Faults {
  /** The least and the most that a message takes, each way. */
  latencyMs: readonly [number, number]
  /** How often a request or a reply is lost. */
  lossRate: number
  /** How often a push is lost. */
  pushLossRate: number
  /** How often a request arrives twice, as a driver that sends again after a reconnect does it. */
  doubleRate: number
  /** How often a message is late: by `lateMs` rather than by `latencyMs`. */
  lateRate: number
  lateMs: readonly [number, number]
  /** When a call without an answer fails. */
  failAfterMs: number
  /**
   * How often a call without an answer fails only after `hangMs`, as with a half-open connection.
   */
  hangRate: number
  hangMs: number
}

export const gentle: Faults = {
  latencyMs: [0.2, 3],
  lossRate: 0,
  pushLossRate: 0,
  doubleRate: 0,
  lateRate: 0,
  lateMs: [500, 20_000],
  failAfterMs: 1_000,
  hangRate: 0,
  hangMs: 60_000,
}

/** Which way a partition cuts. `replies` cuts pushes too. */
export type Cut = 'requests' | 'replies' | 'both'

interface LinkContext {
  readonly world: VirtualWorld
  readonly random: () => number
  readonly process: VirtualProcess
  readonly server: VirtualProcess | undefined
  faults(): Faults
}

/** The wire between one process and the store. */
export class Link {
  readonly #context: LinkContext
  readonly #onMend = new Set<() => void>()
  #cut: Cut | null = null

  constructor(context: LinkContext) {
    this.#context = context
  }

  get process(): VirtualProcess {
    return this.#context.process
  }

  cut(cut: Cut): void {
    this.#cut = cut
  }

  mend(): void {
    if (this.#cut === null) return
    this.#cut = null
    const listeners = [...this.#onMend]
    this.#onMend.clear()
    for (const listener of listeners) listener()
  }

  /** Calls once when the present partition ends; at once if there is none. */
  onMend(listener: () => void): void {
    if (this.#cut === null) listener()
    else this.#onMend.add(listener)
  }

  /**
   * Sends a request: `arrive` runs at the store, once, twice or never; `done` when no copy is under
   * way any more.
   */
  request(arrive: () => void, done: () => void): void {
    const { random, server } = this.#context
    const { doubleRate, lossRate } = this.#context.faults()
    const copies = random() < doubleRate ? 2 : 1
    let underWay = copies
    const ended = (): void => {
      underWay--
      if (underWay === 0) done()
    }
    const handle = (): void => {
      arrive()
      ended()
    }
    for (let copy = 0; copy < copies; copy++) {
      this.#travel('requests', lossRate, (fate) => {
        if (fate !== 'arrived') ended()
        else if (server) server.deliver(handle)
        else handle()
      })
    }
  }

  reply(arrive: () => void): void {
    this.#travel('replies', this.#context.faults().lossRate, (fate) => {
      if (fate === 'arrived') this.process.deliver(arrive)
    })
  }

  push(arrive: () => void, cutOff: () => void): void {
    this.#travel('replies', this.#context.faults().pushLossRate, (fate) => {
      if (fate === 'arrived') this.process.deliver(arrive)
      if (fate === 'cut') cutOff()
    })
  }

  /** How long a call waits for its answer. */
  patienceMs(): number {
    const { hangRate, hangMs, failAfterMs } = this.#context.faults()
    return this.#context.random() < hangRate ? hangMs : failAfterMs
  }

  /** A message does not get through if its way is cut when it leaves or when it would arrive. */
  #travel(
    way: 'requests' | 'replies',
    lossRate: number,
    end: (fate: 'arrived' | 'lost' | 'cut') => void,
  ): void {
    const { world, random } = this.#context
    const { lateRate, lateMs, latencyMs } = this.#context.faults()
    const isLost = random() < lossRate
    const wasCut = this.#isCut(way)
    const [least, most] = random() < lateRate ? lateMs : latencyMs
    world.after(least + random() * (most - least), () => {
      if (wasCut || this.#isCut(way)) end('cut')
      else end(isLost ? 'lost' : 'arrived')
    })
  }

  #isCut(way: 'requests' | 'replies'): boolean {
    return this.#cut === way || this.#cut === 'both'
  }
}
