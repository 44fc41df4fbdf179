import type { HolderView, ResourceView, WaiterView } from '../index.js'

/**
 * What happened to a claim, as far as two looks at the line can tell.
 * - `holds`, `waits`: it was there at the first look
 * - `waiting`: it has joined the line
 * - `granted`: it holds from now on
 * - `released`: a hold ended before its lease: given back, or broken
 * - `left`: a waiter left: it gave up, was cancelled, or held only between two looks
 * - `expired`: its lease or presence had run out when it was missed
 * - `resized`: the number of permits was changed
 */
type LineEventType = 'holds' | 'waits' | 'waiting' | 'granted' | 'released' | 'left' | 'expired' | 'resized'

/** One event of a line. */
export interface LineEvent {
  readonly type: LineEventType
  /** Whose claim it is; null: it is about the line. */
  readonly claim: WaiterView | HolderView | null
  /** How long it has waited or held before; null: not known. */
  readonly afterMs: number | null
  /** The capacity, where it was changed. */
  readonly capacity?: number
}

/** What a look has shown; null: nobody was in the line. */
type Look = ResourceView | null

/** The events between two looks, in the order in which they must have happened. */
export function eventsBetween(before: Look | undefined, after: Look, nowMs: number): LineEvent[] {
  if (before === undefined) return atFirst(after)
  const [old, present] = [claimsOf(before), claimsOf(after)]
  const events: LineEvent[] = []
  for (const [id, claim] of old) if (!present.has(id)) events.push(ended(claim, nowMs))
  if (before && after && before.capacity !== after.capacity)
    events.push({ type: 'resized', claim: null, afterMs: null, capacity: after.capacity })
  for (const [id, claim] of present) {
    const known = old.get(id)
    if (isHolder(claim) && (!known || !isHolder(known) || known.fence !== claim.fence))
      events.push({ type: 'granted', claim, afterMs: known ? between(known.since, claim.since) : null })
    else if (!known) events.push({ type: 'waiting', claim, afterMs: null })
  }
  return events
}

function atFirst(line: Look): LineEvent[] {
  return [...claimsOf(line).values()].map((claim) => ({
    type: isHolder(claim) ? 'holds' : 'waits',
    claim,
    afterMs: null,
  }))
}

function ended(claim: WaiterView | HolderView, nowMs: number): LineEvent {
  const isOver = claim.expires.getTime() <= nowMs
  const type = isOver ? 'expired' : isHolder(claim) ? 'released' : 'left'
  return { type, claim, afterMs: Math.max(0, nowMs - claim.since.getTime()) }
}

/** In the order of the line: holders first. */
function claimsOf(line: Look): Map<string, WaiterView | HolderView> {
  const claims = line ? [...line.holders, ...line.waiters] : []
  return new Map(claims.map((claim) => [claim.id, claim]))
}

function isHolder(claim: WaiterView | HolderView): claim is HolderView {
  return 'fence' in claim
}

function between(from: Date, to: Date): number {
  return Math.max(0, to.getTime() - from.getTime())
}
