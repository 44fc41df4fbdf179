import { deferred } from '../base/deferred.js'
import { nothing } from '../base/nothing.js'
import { type ClaimSpec, type Entry, upgradeRefused } from '../engine/claim.js'
import type { Engine } from '../engine/engine.js'
import { type Frame, findFrame } from '../engine/flow.js'
import { aborted, type Limits, limitsLeft } from '../engine/limits.js'
import type { Owners } from '../engine/owners.js'
import type { Leadership } from './leadership.js'
import { claimSpec, type HoldOptions, type LockDefaults, type LockKind, type LockOrder } from './options.js'

/** What the locks of one client share. */
export interface LockContext {
  readonly engine: Engine
  readonly owners: Owners
  /** null: as long as the lease. */
  readonly presenceMs: number | null
  /** How those who wait for a lock are served, where it says nothing else. */
  readonly order: LockOrder
  readonly defaults: LockDefaults
  /** The elections that this client has won. */
  readonly leaderships: Set<Leadership>
}

/** A way in, counted already: every entrance ends in a hold, or is left again. */
export interface Entrance {
  readonly entry: Entry
  /** The caller's callback is over, or there is none: lets the next nested run of the same frame in. */
  readonly leaveTurn: () => void
  /** The hold was released: the frame that was entered again need not wait for it any more. */
  readonly leaveFrame: () => void
}

/** Enters again where the flow or the owner holds already, else asks the store. null: not to be had at once. */
export async function enter(
  context: LockContext,
  kind: LockKind,
  options: HoldOptions,
  wait: Limits,
): Promise<Entrance | null> {
  const { engine, owners, presenceMs } = context
  const spec = claimSpec(kind, options, presenceMs)
  if (wait.signal?.aborted) throw aborted(spec.resource, wait.signal)
  if (!kind.isReentrant) return entrance(await engine.acquire(spec, wait))

  const frame = findFrame(engine, spec)
  if (!frame || !isSameOwner(spec.owner, frame.entry.claim.spec.owner))
    return entrance(await (spec.owner === null ? engine : owners).acquire(spec, wait))
  const deadline = engine.env.now() + wait.waitMs
  const again = await enterAgain(engine, frame, spec, wait)
  if (again !== 'lost') return again
  return entrance(await engine.acquire(spec, limitsLeft(wait, deadline, engine.env.now())))
}

/** Gives up an entrance that led to no hold. A failed release is none of the caller's business: it ends with its lease. */
export async function leave(engine: Engine, { entry, leaveTurn, leaveFrame }: Entrance): Promise<void> {
  leaveTurn()
  leaveFrame()
  await engine.leave(entry).catch(() => {})
}

/** Whoever names an owner asks for that owner, and not for the flow that it is in. */
function isSameOwner(asking: string | null, holding: string | null): boolean {
  return asking === null || asking === holding
}

function entrance(entry: Entry | null): Entrance | null {
  return entry && { entry, leaveTurn: nothing, leaveFrame: nothing }
}

/** null: not to be had at once. 'lost': the hold was lost while this one waited for its turn, so there is nothing to enter. */
async function enterAgain(
  engine: Engine,
  frame: Frame,
  spec: ClaimSpec,
  wait: Limits,
): Promise<Entrance | null | 'lost'> {
  // By what this frame has, not its claim: a reader inside a writer has other readers beside it, whom a writer must not meet.
  if (spec.permits > frame.entry.permits) throw upgradeRefused(spec.resource)
  if (wait.waitMs === 0 && !frame.turns.isFree(spec.permits)) return null
  const entry = frame.entry.claim.enter(spec.permits, frame.entry.fence)
  const leaveFrame = frame.enter()
  let leaveTurn = (): void => {}
  try {
    leaveTurn = (await turnOf(engine, frame, spec, wait)) ?? leaveTurn
  } catch (error) {
    await leave(engine, { entry, leaveTurn, leaveFrame })
    throw error
  }
  if (engine.checkValidity(entry.claim)) return { entry, leaveTurn, leaveFrame }
  await leave(engine, { entry, leaveTurn, leaveFrame })
  return 'lost'
}

/** null: the hold was over before its turn came. Those before it may never say that they are out. */
async function turnOf(
  engine: Engine,
  frame: Frame,
  spec: ClaimSpec,
  wait: Limits,
): Promise<(() => void) | null> {
  const over = deferred<null>()
  const forget = frame.entry.claim.onEnd(() => over.resolve(null))
  const turn = frame.turns.take(engine.env, spec.permits, wait, spec.resource)
  try {
    const leaveTurn = await Promise.race([turn, over.promise])
    if (!leaveTurn) void turn.then((leaveLate) => leaveLate()).catch(() => {})
    return leaveTurn
  } finally {
    forget()
  }
}
