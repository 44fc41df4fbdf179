import { HoldfastError, invalid } from '../base/errors.js'
import { checkName } from '../base/names.js'

/**
 * What a guard needs to know of a hold: the hold itself, or the resource and fence that came from one through a header or a queue.
 * A hold that shares its resource with others (a reader, a permit of a semaphore) is refused: its fence orders nothing.
 */
export interface Fenced {
  /** The name of what is held. */
  readonly resource: string
  /** The number of the hold. */
  readonly fence: number
  /** A hold says whether it has its resource for itself. What came over a wire was checked before it was sent. */
  readonly isExclusive?: boolean | undefined
}

/** Where fences are remembered, one number for each resource: the SQL guards, the Redis guard and `memoryGuard` are such. */
export interface FenceRegister {
  /** Remembers the fence, or throws STALE_FENCE if a newer one of the same resource has been here. */
  check(hold: Fenced): void | Promise<void>
}

/** The fence of an exclusive hold, or a fence that came from one. Anything else is refused before it is sent. */
export function fenceOf(hold: Fenced | number): number {
  const fence = typeof hold === 'object' && hold !== null ? hold.fence : hold
  if (!Number.isSafeInteger(fence) || fence < 1)
    throw invalid(`The fence is ${String(fence)}, but must be a whole number from 1 to 2^53 - 1: hold.fence`)
  if (typeof hold === 'object' && hold.isExclusive === false)
    throw invalid(
      `The hold of '${hold.resource}' is shared with others, so its fence cannot order writes; write under a mutex or a write lock`,
      hold.resource,
    )
  return fence
}

/** The same, with the name of the resource: for guards that remember fences by it. */
export function checkFenced(hold: Fenced): Fenced {
  if (typeof hold !== 'object' || hold === null)
    throw invalid('A hold, or { resource, fence }, is needed here: a fence is remembered by its resource')
  return { resource: checkName(hold.resource, 'The resource'), fence: fenceOf(hold) }
}

/** Throws STALE_FENCE if a newer fence has been seen. An equal one is the same holder again, and passes. */
export function refuseStale(hold: Fenced | number, newestFence: number): void {
  const fence = fenceOf(hold)
  if (newestFence <= fence) return
  const resource = typeof hold === 'object' ? hold.resource : undefined
  const whose = resource === undefined ? '' : ` of '${resource}'`
  const message = `Refused: fence ${fence}${whose} is stale, fence ${newestFence} was here before; drop this work, or acquire again and start from what is stored now`
  throw new HoldfastError('STALE_FENCE', message, {
    newestFence,
    ...(resource === undefined ? {} : { resource }),
  })
}
