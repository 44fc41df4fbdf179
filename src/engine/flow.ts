import { AsyncLocalStorage } from 'node:async_hooks'
import { deferred } from '../base/deferred.js'
import type { Engine } from './engine.js'
import { NestedRuns } from './nested-runs.js'
import type { Entry } from './request.js'
import type { RequestSpec } from './spec.js'

/** What all that starts inside a frame keeps alive. Emptied on close, or runs would leak. */
interface Flow {
  frame: Frame | undefined
}

/**
 * The inside of one `run`. Everything that its callback starts, awaited or not, may enter the same
 * resource again without asking the store. Parallel nested runs exclude each other.
 */
export class Frame {
  /** null: not entered again, as in most runs. */
  #nested: NestedRuns | null = null
  #inside: Set<Promise<void>> | null = null
  readonly #flow: Flow = { frame: this }
  #isOpen = true
  #isOver = false
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

  /** The nearest frame around this one that is not over. */
  get parent(): Frame | undefined {
    while (this.#parent?.isOver) this.#parent = this.#parent.#parent
    return this.#parent
  }

  /** The nested runs, which exclude each other. */
  get nested(): NestedRuns {
    this.#nested ??= new NestedRuns()
    return this.#nested
  }

  /** Runs work in an async flow that belongs to this frame. */
  run<T>(work: () => T): T {
    return flow.run(this.#flow, work)
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Begins a nested hold. The frame's own `run` settles after the returned function was called. */
  enter(): () => void {
    const inside = deferred<void>()
    this.#inside ??= new Set()
    this.#inside.add(inside.promise)
    return () => {
      this.#inside?.delete(inside.promise)
      inside.resolve()
    }
  }

  /**
   * Its work has ended, and enters no more. Nested runs still do: it waits for them, so they must
   * not wait for it.
   */
  close(): void {
    this.#isOpen = false
  }

  /** Whether nested holds are inside. Those of an outer hold that has ended do not count. */
  get isEntered(): boolean {
    return this.#inside !== null && this.#inside.size > 0 && this.entry.request.phase === 'held'
  }

  /** Does not wait for nested holds once the outer hold has ended: some never end. */
  async allOut(): Promise<void> {
    const over = deferred<void>()
    const forget = this.entry.request.onEnd(over.resolve)
    await Promise.race([Promise.all(this.#inside ?? []), over.promise])
    forget()
  }

  /** Nobody enters any more. Of several frames, the outer one ends first. */
  end(): void {
    this.#isOver = true
    this.#flow.frame = this.parent
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /**
   * Whether its hold, or that of an outer frame on the same request, is valid and not released. A
   * hold whose time is over counts as lost: if a late answer renewed it, a nested run would wait
   * for itself.
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

/**
 * The innermost frame around work that begins now. It need not be open: a nested run may begin when
 * the work around it has ended.
 */
export function frameAround(): Frame | undefined {
  const frame = flow.getStore()?.frame
  return frame?.isOver ? frame.parent : frame
}

/** The innermost open frame of the current async flow. */
export function currentFrame(): Frame | undefined {
  let frame = frameAround()
  while (frame?.isOpen === false) frame = frame.parent
  return frame
}

/** The frames of the current async flow with valid holds, innermost first. */
export function* heldFrames(engine: Engine, innermost = currentFrame()): Generator<Frame, void, void> {
  for (let frame = innermost; frame; frame = frame.parent) {
    if (frame.engine === engine && !frame.isOver && frame.isHeld()) yield frame
  }
}

/** The frame of this async flow that holds the resource, not a semaphore of the same name. */
export function findFrame(
  engine: Engine,
  { resource, capacity }: RequestSpec,
  innermost?: Frame,
): Frame | undefined {
  for (const frame of heldFrames(engine, innermost)) {
    const { spec } = frame.entry.request
    if (spec.resource === resource && spec.capacity === capacity) return frame
  }
  return undefined
}
