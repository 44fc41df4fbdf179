import { AsyncLocalStorage } from 'node:async_hooks'
import type { Claim } from './claim.js'
import type { Engine } from './engine.js'
import { Turns } from './turns.js'

/**
 * The inside of one `run`: what its callback starts, and awaits or not, belongs to it, and may enter the same resource again
 * without asking the store. Parallel nested runs take turns, or two of them would be inside at once.
 */
export class Frame {
  readonly turns = new Turns()
  readonly #nested = new Set<Promise<unknown>>()
  #isOpen = true

  constructor(
    readonly engine: Engine,
    readonly claim: Claim,
    readonly parent: Frame | undefined,
  ) {}

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** A hold that was taken inside this frame; the frame's own `run` settles after it. */
  addNested(released: Promise<unknown>): void {
    this.#nested.add(released)
    void released.finally(() => this.#nested.delete(released))
  }

  /** Lets nobody in any more, and waits for those who are inside. */
  async close(): Promise<void> {
    this.#isOpen = false
    await Promise.allSettled(this.#nested)
  }
}

const flow = new AsyncLocalStorage<Frame>()

export function runInFrame<T>(frame: Frame, work: () => T): T {
  return flow.run(frame, work)
}

export function currentFrame(): Frame | undefined {
  return flow.getStore()
}

/** The frame of the current async flow that holds the resource; a closed one, or one whose hold was lost, counts for nothing. */
export function findFrame(engine: Engine, resource: string): Frame | undefined {
  for (let frame = flow.getStore(); frame; frame = frame.parent) {
    const isSame = frame.engine === engine && frame.claim.resource === resource
    if (isSame && frame.isOpen && frame.claim.isValid(engine.env.now())) return frame
  }
  return undefined
}
