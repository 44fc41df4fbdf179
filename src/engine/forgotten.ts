import { debuglog } from 'node:util'
import { systemEnv } from '../base/env.js'
import type { Claim, Entry, Trace } from './claim.js'
import type { Engine } from './engine.js'

/** A stack costs as much as the whole acquisition, so it is taken only where NODE_DEBUG asks for it. */
const debug = debuglog('holdfast')

const registry = new FinalizationRegistry<Trace>((trace) => {
  trace.isForgotten = true
})

/** A hold that its holder has to release, from now on: it is noticed if that can no longer happen. */
export function watchHold(engine: Engine, entry: Entry, hold: object, onRelease: () => void): void {
  // When garbage is collected is not for a simulation to know.
  if (engine.env !== systemEnv) return
  const stack = debug.enabled ? (new Error('acquired here').stack ?? null) : null
  const trace: Trace = { isForgotten: false, stack, onRelease }
  entry.trace = trace
  registry.register(hold, trace, trace)
}

/** It was released, or is another's to release. */
export function unwatchHold(entry: Entry): void {
  if (entry.trace) registry.unregister(entry.trace)
  entry.trace = null
}

/** Warns of the holds on a claim that were forgotten since. Asked before each renewal, which then does not take place. */
export function tellOfForgotten(claim: Claim): void {
  for (const { trace, fence } of claim.dropForgotten()) {
    const { label } = claim.spec
    const name = `The hold of '${claim.resource}' with fence ${fence}${label === null ? '' : ` (${label})`}`
    const message = `${name} was forgotten: it was garbage-collected without a release. It is renewed no more and ends with its lease; use run(), await using or release()`
    const detail = trace?.stack ?? 'Set NODE_DEBUG=holdfast to see where it was acquired.'
    process.emitWarning(message, { type: 'HoldfastWarning', code: 'HOLDFAST_FORGOTTEN_HOLD', detail })
    trace?.onRelease()
  }
}
