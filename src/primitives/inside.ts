import { HoldfastError } from '../base/errors.js'
import { currentFrame, Frame } from '../engine/flow.js'
import { watchHold } from '../engine/forgotten.js'
import { Hold } from '../engine/hold.js'
import type { Entrance, LockContext } from './entrance.js'

/** The hold of an entrance that is not a `run`. Without a callback nobody knows where its inside ends, so it keeps nobody of its frame out. */
export function holdOf(context: LockContext, { entry, leaveTurn, leaveFrame }: Entrance): Hold {
  leaveTurn()
  const hold = new Hold(context.engine, entry, leaveFrame)
  watchHold(context.engine, entry, hold, leaveFrame)
  return hold
}

/** What to run inside one or several holds. */
export interface Inside<T> {
  readonly entrances: readonly Entrance[]
  readonly work: (holds: readonly Hold[]) => T | PromiseLike<T>
  /** Whether the holds were taken together, in order of their names. */
  readonly areOrdered: boolean
}

/** Runs work inside all the holds, and releases them in any case. */
export async function runInside<T>(context: LockContext, inside: Inside<T>): Promise<T> {
  const { engine } = context
  const { entrances, work, areOrdered } = inside
  const holds = entrances.map(({ entry }) => new Hold(engine, entry))
  let innermost = currentFrame()
  const frames = entrances.map(({ entry }) => {
    innermost = new Frame(engine, entry, innermost, areOrdered)
    return innermost
  })
  try {
    const outcome = await settled(() => runIn(innermost, () => work(holds)))
    const lost = holds.find((hold) => !hold.isReleased && !hold.isValid)
    for (const frame of frames.reverse()) await frame.close()
    const unheld = await releaseAll(holds)
    if ('error' in outcome) throw outcome.error
    const gone = lost ?? unheld
    if (gone) throw gone.lostBecause ?? lostUnnoticed(gone.resource)
    return outcome.value
  } finally {
    // Not before: a hold that was given back early leaves the work inside all the same.
    for (const { leaveTurn, leaveFrame } of entrances) {
      leaveTurn()
      leaveFrame()
    }
  }
}

function runIn<T>(frame: Frame | undefined, work: () => T): T {
  return frame ? frame.run(work) : work()
}

/** The first hold that turned out to be lost. A failed release hides neither the value nor the error of the work: it ends with its lease. */
async function releaseAll(holds: readonly Hold[]): Promise<Hold | undefined> {
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
