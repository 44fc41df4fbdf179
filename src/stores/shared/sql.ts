import { FLOOR_SKEW_MS, HIGHEST_FENCE } from '../../contract/constants.js'

// Rules of the contract as SQL expressions, which PostgreSQL and MySQL read alike.

const SKEW_US = FLOOR_SKEW_MS * 1000

/** As `nextFence` in contract/fence.ts; `wall` is the server's clock in microseconds. */
export function nextFence(last: string, floor: string, wall: string): string {
  return `greatest(${last} + 1, least(${floor} + 1, ${wall} + ${SKEW_US}), ${wall})`
}

/** Whether a fence is above the limit, as the first of a block. */
export function isFenceTooHigh(fence: string, block: string): string {
  return `${fence} > ${HIGHEST_FENCE} - (${block} - 1)`
}

/** Whether no fence that `nextFence` can give, whatever the floor, is too high. */
export function hasFencesLeft(last: string, wall: string, block: string): string {
  return `greatest(${last}, ${wall} + ${SKEW_US}) <= ${HIGHEST_FENCE} - ${block}`
}

/** The admission rule, as in contract/admit.ts: whether the next claim fits beside the holds. */
export function fits(used: string, permits: string, capacity: string): string {
  return `(${used} + ${permits} <= ${capacity})`
}

/** A line's clock, which never goes back: `shift` grows when the server's clock is set back. */
export function lineClock(wall: string): string {
  return `greatest(${wall} + shift, seen)`
}
