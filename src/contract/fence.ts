import { HoldfastError } from '../base/errors.js'
import { FLOOR_SKEW_MS, HIGHEST_FENCE } from './constants.js'

interface FenceInput {
  /** The last fence that the store gave. */
  last: number
  /** The highest fence of this resource that the client has seen; 0: none. */
  floor: number
  /** The store's wall clock. */
  wallMs: number
  /** How many successive fences to take; the result is the first. */
  block: number
}

/**
 * The next fence by a hybrid logical clock: above the last one, above what the client has seen, and
 * not below the wall clock in microseconds. The counter alone keeps the order; the clock matters
 * only after the store has lost its counter.
 */
export function nextFence({ last, floor, wallMs, block }: FenceInput): number {
  const clockUs = Math.floor(wallMs * 1000)
  const believedFloor = Math.min(floor + 1, clockUs + FLOOR_SKEW_MS * 1000)
  const fence = Math.max(last + 1, believedFloor, clockUs)
  checkFences(fence, block)
  return fence
}

/** Fails if some of these successive fences are too high to be counted. */
export function checkFences(first: number, count: number): void {
  if (first <= HIGHEST_FENCE - (count - 1)) return
  throw new HoldfastError(
    'UNSUPPORTED',
    'The fence counter has passed 2^53; set the clock of the store right and start with a new space',
  )
}
