import { isWatched, runChannel, trace } from '../base/channels.js'
import { HoldfastError } from '../base/errors.js'
import type { HoldContext, RunContext } from '../base/events.js'
import { Frame, frameAround } from '../engine/flow.js'
import { watchHold } from '../engine/forgotten.js'
import type { Entry } from '../engine/request.js'
import { Hold } from './hold.js'
import type { LockContext } from './reentry.js'

/**
 * The hold of an `acquire`. Its end is unknown without a callback, so it does not exclude nested
 * runs.
 */
export function holdOf({ engine }: LockContext, entry: Entry): Hold {
  entry.endRun()
  const hold = new Hold(engine, entry, entry.leaveFrame)
  watchHold(engine, entry, hold, entry.leaveFrame)
  return hold
}

/** The work to run inside one or several holds. */
export interface Inside<T> {
  readonly entries: readonly Entry[]
  readonly work: (holds: readonly Hold[]) => T | PromiseLike<T>
  /** Whether the holds were taken together, in order of their names. */
  readonly areOrdered: boolean
}

/** Runs work inside all the holds, and always releases them. */
export async function runInside<T>({ engine }: LockContext, inside: Inside<T>): Promise<T> {
  const { entries, work, areOrdered } = inside
  const holds = entries.map((entry) => new Hold(engine, entry))
  let innermost = frameAround()
  const frames = entries.map((entry) => {
    innermost = new Frame(engine, entry, innermost, areOrdered)
    return innermost
  })
  const runWork = watched(entries, () => work(holds))
  try {
    // The work never begins within the call of `run`, also where the store answers at once.
    await undefined
    let outcome: { value: T } | { error: unknown }
    // Not by `settled`: this is the path of every `run`, and each promise on it counts.
    try {
      outcome = { value: await (innermost ? innermost.run(runWork) : runWork()) }
    } catch (error) {
      outcome = { error }
    }
    const lost = holds.find((hold) => !hold.isReleased && !hold.isValid)
    for (const frame of frames) frame.close()
    for (let inner = entered(frames); inner; inner = entered(frames)) await inner.allOut()
    for (const frame of frames) frame.end()
    const releasing = releaseAll(holds)
    const unheld = releasing instanceof Promise ? await releasing : releasing
    if ('error' in outcome) throw outcome.error
    const gone = lost ?? unheld
    if (gone) throw gone.lostBecause ?? lostUnnoticed(gone.resource)
    return outcome.value
  } finally {
    // Not earlier: after an early release the work is still inside.
    for (const { endRun, leaveFrame } of entries) {
      endRun()
      leaveFrame()
    }
  }
}

function entered(frames: readonly Frame[]): Frame | undefined {
  return frames.find((frame) => frame.isEntered)
}

/** The work, published once for each hold that it runs in, if anybody subscribes. */
function watched<T>(entries: readonly Entry[], work: () => T | PromiseLike<T>): () => T | PromiseLike<T> {
  let inner = work
  for (const entry of entries) {
    const hold = entry.request.observation?.holdOf(entry)
    if (hold && isWatched(runChannel)) inner = watchedIn(hold, inner)
  }
  return inner
}

function watchedIn<T>(hold: HoldContext, work: () => T | PromiseLike<T>): () => T | PromiseLike<T> {
  return () => {
    const context: RunContext = { hold }
    return trace(runChannel, context, () => (context.around ? context.around(work) : work()))
  }
}

/**
 * The first hold that was lost. A failed release hides neither the value nor the error of the work.
 */
function releaseAll(holds: readonly Hold[]): Hold | undefined | Promise<Hold | undefined> {
  const first = holds.length === 1 ? holds[0] : undefined
  const wasHeld = first?.giveBack()
  if (first && typeof wasHeld === 'boolean') return wasHeld ? undefined : first
  return releaseEach(holds)
}

async function releaseEach(holds: readonly Hold[]): Promise<Hold | undefined> {
  const wereHeld = await Promise.all(holds.map((hold) => hold.release().catch(() => true)))
  return holds.find((_hold, index) => wereHeld[index] === false)
}

/** The value or the error of the work, whether it throws, rejects or returns any thenable. */
export async function settled<T>(work: () => T | PromiseLike<T>): Promise<{ value: T } | { error: unknown }> {
  try {
    return { value: await work() }
  } catch (error) {
    return { error }
  }
}

export function lostUnnoticed(resource: string): HoldfastError {
  const message = `The hold of '${resource}' was lost before the work was done: the store no longer had it at the release`
  return new HoldfastError('HOLD_LOST', message, { resource })
}
