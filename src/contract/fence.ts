import { HoldfastError } from '../base/errors.js'
import { FLOOR_SKEW_MS, HIGHEST_FENCE } from './constants.js'

interface FenceInput {
  /** The last fence that the store gave out. */
  last: number
  /** The highest fence that the claiming client has seen of this resource; 0 if none. */
  floor: number
  /** The store's wall clock. */
  wallMs: number
  /** How many successive fences are taken; the answer is the first. */
  block: number
}

/**
 * The next fence by a hybrid logical clock: above the last one, above what the client has seen, and not behind the clock in
 * microseconds. The clock only matters when the store has lost its counter; the counter alone keeps the order while it lives.
 */
export function nextFence({ last, floor, wallMs, block }: FenceInput): number {
  const clockUs = Math.floor(wallMs * 1000)
  const believedFloor = Math.min(floor + 1, clockUs + FLOOR_SKEW_MS * 1000)
  const fence = Math.max(last + 1, believedFloor, clockUs)
  if (fence > HIGHEST_FENCE - (block - 1)) {
    throw new HoldfastError(
      'UNSUPPORTED',
      'The fence counter has passed 2^53; set the clock of the store right and start with a new space',
    )
  }
  return fence
}
