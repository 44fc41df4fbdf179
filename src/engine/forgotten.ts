import { debuglog } from 'node:util'
import { systemEnv } from '../base/env.js'
import type { Engine } from './engine.js'
import type { Lease } from './lease.js'
import type { Entry, Request, Trace } from './request.js'

/** A stack costs as much as the whole acquisition, so it is taken only where NODE_DEBUG asks for it. */
const debug = debuglog('holdfast')

const registry = new FinalizationRegistry<Trace>((trace) => {
  trace.isForgotten = true
})

/** Notices if the hold can no longer be released, because nobody has a reference to it. */
export function watchHold(engine: Engine, entry: Entry, hold: object, onRelease: () => void): void {
  // A simulation must not depend on when garbage is collected.
  if (engine.env !== systemEnv) return
  const stack = debug.enabled ? (new Error('acquired here').stack ?? null) : null
  const trace: Trace = { isForgotten: false, stack, onRelease }
  entry.trace = trace
  registry.register(hold, trace, trace)
}

/** The hold was released, or another process releases it. */
export function unwatchHold(entry: Entry): void {
  if (entry.trace) registry.unregister(entry.trace)
  entry.trace = null
}

/** Warns of the holds that were forgotten since. Called before each renewal, which then does not take place. */
export function warnOfForgotten(lease: Lease): void {
  for (const request of lease.served) {
    const forgotten = request.dropForgotten()
    if (forgotten.length === 0) continue
    // Beside other readers it ends here; alone, it keeps the lease until that ends, and its owner may enter it again.
    if (lease.served.length > 1 && !request.isEntered) lease.drop(request)
    for (const entry of forgotten) warn(request, entry)
  }
  lease.isForgotten = lease.isServing && lease.served.every((request) => !request.isEntered)
}

function warn({ resource, fence, spec: { label } }: Request, { trace }: Entry): void {
  const name = `The hold of '${resource}' with fence ${fence}${label === null ? '' : ` (${label})`}`
  const message = `${name} was forgotten: it was garbage-collected without a release. It is renewed no more and ends with its lease; use run(), await using or release()`
  const detail = trace?.stack ?? 'Set NODE_DEBUG=holdfast to see where it was acquired.'
  process.emitWarning(message, { type: 'HoldfastWarning', code: 'HOLDFAST_FORGOTTEN_HOLD', detail })
  trace?.onRelease()
}
