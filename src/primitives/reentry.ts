import { deferred } from '../base/deferred.js'
import { nothing } from '../base/nothing.js'
import { aborted, type Limits, limitsLeft } from '../calls/limits.js'
import type { Engine } from '../engine/engine.js'
import { type Frame, findFrame } from '../engine/flow.js'
import { type Entry, upgradeRefused } from '../engine/request.js'
import type { RequestSpec } from '../engine/spec.js'
import type { Leadership } from './leadership.js'
import type { Operator } from './operator.js'
import { type HoldOptions, type LockDefaults, type LockKind, type LockOrder, requestSpec } from './options.js'
import type { Owners } from './owners.js'

/** How long a caller that gives up waits for its release: more would overrun its own wait. */
const RELEASE_MS = 500

/** The common context of the locks of one client. */
export interface LockContext {
  readonly engine: Engine
  readonly operator: Operator
  readonly owners: Owners
  /** null: as long as the lease. */
  readonly presenceMs: number | null
  /** The default order of waiters. */
  readonly order: LockOrder
  readonly defaults: LockDefaults
  /** The elections that this client has won. */
  readonly leaderships: Set<Leadership>
}

/**
 * Enters again if the flow or the owner already holds it, otherwise asks the store. null: not free,
 * and `wait` is 0. `innermost`: the frame around the caller, where it was found earlier.
 */
export function enter(
  context: LockContext,
  kind: LockKind,
  options: HoldOptions,
  wait: Limits,
  innermost?: Frame,
): Entry | null | Promise<Entry | null> {
  const { engine, presenceMs } = context
  const spec = requestSpec(kind, options, presenceMs)
  if (wait.signal?.aborted) throw aborted(spec.resource, wait.signal)
  if (!kind.isReentrant) return engine.acquire(spec, wait)

  const frame = findFrame(engine, spec, innermost)
  if (!frame || !isSameOwner(spec.owner, frame.entry.request.spec.owner)) return ask(context, spec, wait)
  return enterFrame(context, frame, spec, wait)
}

/** A new request, or one more hold on that of the same owner. */
function ask(
  { engine, owners }: LockContext,
  spec: RequestSpec,
  wait: Limits,
): Entry | null | Promise<Entry | null> {
  return spec.owner === null ? engine.acquire(spec, wait) : owners.acquire(spec, wait)
}

/** Gives up a hold that the caller never received. If the release fails, it ends with its lease. */
export async function leave(engine: Engine, entry: Entry): Promise<void> {
  entry.endRun()
  entry.leaveFrame()
  await released(engine, () => engine.leave(entry))
}

/**
 * Waits a moment for a release whose outcome does not matter: the caller may ask again at once. It
 * goes on if the store is silent, and `close()` waits for it.
 */
export async function released({ env }: Engine, release: () => boolean | Promise<unknown>): Promise<void> {
  const isLong = deferred<void>()
  let stop = nothing
  try {
    const leaving = release()
    if (typeof leaving === 'boolean') return
    stop = env.timer(RELEASE_MS, isLong.resolve, { keepAlive: true })
    await Promise.race([leaving, isLong.promise])
  } catch {
    // It ends with its lease.
  } finally {
    stop()
  }
}

/** A caller that names an owner means that owner, not the flow that it is in. */
function isSameOwner(asking: string | null, holding: string | null): boolean {
  return asking === null || asking === holding
}

async function enterFrame(
  context: LockContext,
  frame: Frame,
  spec: RequestSpec,
  wait: Limits,
): Promise<Entry | null> {
  const { engine } = context
  const deadline = engine.env.now() + wait.waitMs
  const again = await enterAgain(engine, frame, spec, wait)
  if (again !== 'lost') return again
  return ask(context, spec, limitsLeft(wait, deadline, engine.env.now()))
}

/** null: not free, and `wait` is 0. 'lost': the outer hold was lost meanwhile. */
async function enterAgain(
  engine: Engine,
  frame: Frame,
  spec: RequestSpec,
  wait: Limits,
): Promise<Entry | null | 'lost'> {
  const { request } = frame.entry
  // Compare with the frame, not with its lease: a reader inside a writer may have other readers
  // beside it, so no writer may enter.
  if (spec.permits > frame.entry.permits) throw upgradeRefused(spec.resource)
  if (wait.waitMs === 0 && !frame.nested.isFree(spec.permits)) return null
  const entry = request.enter(spec.permits)
  entry.leaveFrame = frame.enter()
  try {
    entry.endRun = (await beginNested(engine, frame, spec, wait)) ?? nothing
  } catch (error) {
    await leave(engine, entry)
    throw error
  }
  if (engine.checkValidity(request)) return entry
  await leave(engine, entry)
  return 'lost'
}

/** null: the outer hold ended before this run could begin. The runs before it may never end. */
async function beginNested(
  engine: Engine,
  frame: Frame,
  spec: RequestSpec,
  wait: Limits,
): Promise<(() => void) | null> {
  const over = deferred<null>()
  const forget = frame.entry.request.onEnd(() => over.resolve(null))
  const beginning = frame.nested.begin(engine.env, spec.permits, wait, spec.resource)
  try {
    const endRun = await Promise.race([beginning, over.promise])
    if (!endRun) void beginning.then((endLate) => endLate()).catch(() => {})
    return endRun
  } finally {
    forget()
  }
}
