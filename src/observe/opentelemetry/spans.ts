import {
  type Attributes,
  type Context,
  context,
  type Span,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import type { AcquireContext, HoldContext, LockDetails, RunContext } from '../../base/events.js'
import { countedName, type NormalizeResource } from '../label-sets.js'
import { on } from '../watch.js'

/** Ends that somebody has to look at. */
const BAD_ENDS = new Set(['timeout', 'failed', 'lost', 'expired', 'forgotten'])

interface Asked {
  readonly span: Span
  /** What was active where the lock was asked for: also the parent of the hold. */
  readonly parent: Context
}

/**
 * A span for each request, and one for each hold, which links to it. The span of the hold is active
 * inside `run`. The returned function ends it.
 */
export function traceLocks(tracer: Tracer, normalize: NormalizeResource | undefined): () => void {
  const asked = new WeakMap<AcquireContext, Asked>()
  const held = new WeakMap<HoldContext, Span>()

  const stops = [
    on('tracing:holdfast:acquire:start', (acquire: AcquireContext) => {
      const parent = context.active()
      const attributes = attributesOf(acquire, normalize)
      asked.set(acquire, { span: tracer.startSpan('holdfast.acquire', { attributes }, parent), parent })
    }),
    on('tracing:holdfast:acquire:asyncEnd', (acquire: AcquireContext) => {
      const span = asked.get(acquire)?.span
      if (!span) return
      span.setAttribute('holdfast.queued', acquire.isQueued)
      if (acquire.fence !== undefined) span.setAttribute('holdfast.fence', acquire.fence)
      end(span, acquire)
    }),
    on('tracing:holdfast:hold:start', (hold: HoldContext) => {
      const from = asked.get(hold.acquire)
      if (!from) return
      const attributes = { ...attributesOf(hold, normalize), 'holdfast.fence': hold.fence }
      const links = [{ context: from.span.spanContext() }]
      held.set(hold, tracer.startSpan('holdfast.hold', { attributes, links }, from.parent))
    }),
    on('tracing:holdfast:run:start', (run: RunContext) => {
      const span = held.get(run.hold)
      if (!span) return
      const inside = trace.setSpan(context.active(), span)
      const inner = run.around
      run.around = (work) => context.with(inside, inner ? () => inner(work) : work)
    }),
    on('tracing:holdfast:hold:asyncEnd', (hold: HoldContext) => {
      const span = held.get(hold)
      if (span) end(span, hold)
    }),
  ]
  return () => {
    for (const stop of stops) stop()
  }
}

function attributesOf(details: LockDetails, normalize: NormalizeResource | undefined): Attributes {
  const { space, store, primitive, permits, label } = details
  const resource = countedName(normalize, details.resource)
  return {
    'holdfast.space': space,
    'holdfast.store': store,
    'holdfast.primitive': primitive,
    'holdfast.permits': permits,
    ...(label === null ? {} : { 'holdfast.label': label }),
    ...(resource === undefined ? {} : { 'holdfast.resource': resource }),
  }
}

/** By the code of the error: its message has the name of the resource. */
function end(span: Span, { outcome = 'failed', error }: AcquireContext | HoldContext): void {
  span.setAttribute('holdfast.outcome', outcome)
  const code = codeOf(error)
  if (code !== undefined) span.setAttribute('error.type', code)
  if (BAD_ENDS.has(outcome) || (outcome === 'released' && error !== undefined))
    span.setStatus({ code: SpanStatusCode.ERROR, message: code ?? outcome })
  span.end()
}

/** Not by its class: a bundle may have another copy of it. */
function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | undefined)?.code
  return typeof code === 'string' ? code : undefined
}
