import { AsyncLocalStorage } from 'node:async_hooks'
import { deferred } from '../base/deferred.js'
import type { Engine } from './engine.js'
import { NestedRuns } from './nested-runs.js'
import type { Entry } from './request.js'
import type { RequestSpec } from './spec.js'

/**
 * What everything that starts inside a frame remembers for as long as it lives: a promise, a timer, a socket. Emptied when the
 * frame closes; otherwise, where each run starts the next one, all runs that ever were would hang on the last.
 */
interface Flow {
  frame: Frame | undefined
}

/**
 * The inside of one `run`: what its callback starts, and awaits or not, belongs to it, and may enter the same resource again
 * without asking the store. Parallel nested runs take turns, or two of them would be inside at once.
 */
export class Frame {
  /** null: nobody has entered again, as in most runs. */
  #nested: NestedRuns | null = null
  #inside: Set<Promise<void>> | null = null
  readonly #flow: Flow = { frame: this }
  #isOpen = true
  #parent: Frame | undefined

  constructor(
    readonly engine: Engine,
    readonly entry: Entry,
    parent: Frame | undefined,
    /** Whether it was taken together with others, in order of their names. */
    readonly isOrdered: boolean,
  ) {
    this.#parent = parent
  }

  /** The nearest frame around this one that is still open. */
  get parent(): Frame | undefined {
    while (this.#parent && !this.#parent.isOpen) this.#parent = this.#parent.#parent
    return this.#parent
  }

  /** The runs inside this one, which take turns. */
  get nested(): NestedRuns {
    this.#nested ??= new NestedRuns()
    return this.#nested
  }

  /** Runs work whose async flow belongs to this frame. */
  run<T>(work: () => T): T {
    return flow.run(this.#flow, work)
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** A nested hold begins; the frame's own `run` settles after the returned function was called. */
  enter(): () => void {
    const inside = deferred<void>()
    this.#inside ??= new Set()
    this.#inside.add(inside.promise)
    return () => {
      this.#inside?.delete(inside.promise)
      inside.resolve()
    }
  }

  /** Lets no nested hold begin any more. The promise of the nested holds that have not ended; null: there are none. */
  close(): Promise<void> | null {
    this.#isOpen = false
    this.#flow.frame = this.parent
    return this.#inside && this.#inside.size > 0 ? this.#allOut(this.#inside) : null
  }

  /** Nested holds are not waited for when the outer one is over: some never end. */
  async #allOut(inside: ReadonlySet<Promise<void>>): Promise<void> {
    const over = deferred<void>()
    const forget = this.entry.request.onEnd(over.resolve)
    await Promise.race([Promise.all(inside), over.promise])
    forget()
  }

  /**
   * Whether its hold, or that of a frame around it on the same request, can be trusted and was not given back. If its time is
   * over, it is lost from now on: a nested run would otherwise wait for itself, should a late answer renew it.
   */
  isHeld(): boolean {
    const { request } = this.entry
    if (!this.engine.checkValidity(request)) return false
    for (let frame: Frame | undefined = this; frame; frame = frame.parent)
      if (request.has(frame.entry)) return true
    return false
  }
}

const flow = new AsyncLocalStorage<Flow>()

/** The innermost open frame of the current async flow. */
export function currentFrame(): Frame | undefined {
  const frame = flow.getStore()?.frame
  return frame?.isOpen === false ? frame.parent : frame
}

/** The frames of the current async flow whose holds stand, innermost first. */
export function* heldFrames(engine: Engine): Generator<Frame, void, void> {
  for (let frame = currentFrame(); frame; frame = frame.parent) {
    if (frame.engine === engine && frame.isHeld()) yield frame
  }
}

/**
 * The frame of the current async flow that holds the resource; a closed one, or one whose hold was lost or given back, counts for nothing.
 * Nor does a semaphore of the same name: its holder is not inside a lock, and the store will say so.
 */
export function findFrame(engine: Engine, { resource, capacity }: RequestSpec): Frame | undefined {
  for (const frame of heldFrames(engine)) {
    const { spec } = frame.entry.request
    if (spec.resource === resource && spec.capacity === capacity) return frame
  }
  return undefined
}
