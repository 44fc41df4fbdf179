import { AsyncLocalStorage } from 'node:async_hooks'
import { deferred } from '../base/deferred.js'
import type { Claim } from './claim.js'
import type { Engine } from './engine.js'
import { Turns } from './turns.js'

/**
 * The inside of one `run`: what its callback starts, and awaits or not, belongs to it, and may enter the same resource again
 * without asking the store. Parallel nested runs take turns, or two of them would be inside at once.
 */
export class Frame {
  readonly turns = new Turns()
  readonly #inside = new Set<Promise<void>>()
  #isOpen = true

  constructor(
    readonly engine: Engine,
    readonly claim: Claim,
    readonly parent: Frame | undefined,
  ) {}

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Somebody enters again; the frame's own `run` settles after the returned function was called. */
  enter(): () => void {
    const inside = deferred<void>()
    this.#inside.add(inside.promise)
    return () => {
      this.#inside.delete(inside.promise)
      inside.resolve()
    }
  }

  /** Lets nobody in any more, and waits for those who are inside. */
  async close(): Promise<void> {
    this.#isOpen = false
    await Promise.all(this.#inside)
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
