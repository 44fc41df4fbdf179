import { debuglog } from 'node:util'
import { systemEnv } from '../base/env.js'
import type { Engine } from './engine.js'
import type { Lease } from './lease.js'
import type { Entry, Request, Trace } from './request.js'

/** A stack trace costs as much as an acquisition, so only NODE_DEBUG turns it on. */
const debug = debuglog('holdfast')

/**
 * Most holds are released before their first renewal, so only that one makes the weak reference. A
 * FinalizationRegistry would keep every hold alive until the next full garbage collection.
 */
class HoldTrace implements Trace {
  #hold: object | null
  #weak: WeakRef<object> | null = null

  constructor(
    hold: object,
    readonly stack: string | null,
    readonly onRelease: () => void,
  ) {
    this.#hold = hold
  }

  isForgotten(): boolean {
    if (this.#weak) return this.#weak.deref() === undefined
    if (this.#hold) this.#weak = new WeakRef(this.#hold)
    this.#hold = null
    return false
  }
}

/** Notices when the hold is garbage-collected without a release. */
export function watchHold(engine: Engine, entry: Entry, hold: object, onRelease: () => void): void {
  // A simulation must not depend on garbage collection.
  if (engine.env !== systemEnv) return
  const stack = debug.enabled ? (new Error('acquired here').stack ?? null) : null
  entry.trace = new HoldTrace(hold, stack, onRelease)
}

/** Stops watching: the hold was released, or another process will release it. */
export function unwatchHold(entry: Entry): void {
  entry.trace = null
}

/** Warns of forgotten holds. Called before each renewal, which is then skipped. */
export function warnOfForgotten(lease: Lease): void {
  for (const request of lease.served) {
    const forgotten = request.dropForgotten()
    if (forgotten.length === 0) continue
    // Beside other readers it ends here. Alone, it keeps its lease: its owner may enter it again.
    if (lease.served.length > 1 && !request.isEntered) {
      lease.drop(request)
      request.forget()
    }
    for (const entry of forgotten) warn(request, entry)
  }
  lease.isForgotten = lease.isServing && lease.served.every((request) => !request.isEntered)
}

function warn({ resource, fence, spec: { label } }: Request, { trace }: Entry): void {
  const name = `The hold of '${resource}' with fence ${fence}${label === null ? '' : ` (${label})`}`
  const message = `${name} was forgotten: it was garbage-collected without a release. It is no longer renewed and ends with its lease; use run(), await using or release()`
  const detail = trace?.stack ?? 'Set NODE_DEBUG=holdfast to see where it was acquired.'
  process.emitWarning(message, { type: 'HoldfastWarning', code: 'HOLDFAST_FORGOTTEN_HOLD', detail })
  trace?.onRelease()
}
