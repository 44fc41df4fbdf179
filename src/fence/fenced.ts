import { fenceChannel } from '../base/channels.js'
import { HoldfastError, invalid } from '../base/errors.js'
import type { StaleFence } from '../base/events.js'
import { checkName } from '../base/names.js'

/**
 * What a guard needs: a hold, or the resource and fence of one that came through a header or a
 * queue. A hold that shares its resource (a reader, a semaphore permit) is refused: its fence
 * orders nothing.
 */
export interface Fenced {
  /** The name of the held resource. */
  readonly resource: string
  /** The fence of the hold. */
  readonly fence: number
  /**
   * false: the hold shares its resource. Left out in data from a request, which its sender checked.
   */
  readonly isExclusive?: boolean | undefined
}

/**
 * Remembers the newest fence of each resource: the SQL guards, the Redis guard and `memoryGuard`.
 */
export interface FenceRegister {
  /** Remembers the fence. Throws STALE_FENCE if a newer one of the same resource was seen. */
  check(hold: Fenced): void | Promise<void>
}

/** The fence of an exclusive hold, or a plain fence. Throws INVALID_ARGUMENT for anything else. */
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

/** The same with the resource, for guards that remember fences by resource. */
export function checkFenced(hold: Fenced): Fenced {
  if (typeof hold !== 'object' || hold === null)
    throw invalid('A hold, or { resource, fence }, is needed here: fences are remembered by resource')
  return { resource: checkName(hold.resource, 'The resource'), fence: fenceOf(hold) }
}

/** Throws STALE_FENCE if a newer fence was seen. An equal one is the same holder, and passes. */
export function refuseStale(hold: Fenced | number, newestFence: number): void {
  const fence = fenceOf(hold)
  if (newestFence <= fence) return
  const resource = typeof hold === 'object' ? hold.resource : undefined
  if (fenceChannel.hasSubscribers) fenceChannel.publish({ resource, fence, newestFence } satisfies StaleFence)
  const whose = resource === undefined ? '' : ` of '${resource}'`
  const message = `Refused: fence ${fence}${whose} is stale, fence ${newestFence} was here before; drop this work, or acquire again and start from what is stored now`
  throw new HoldfastError('STALE_FENCE', message, {
    newestFence,
    ...(resource === undefined ? {} : { resource }),
  })
}
