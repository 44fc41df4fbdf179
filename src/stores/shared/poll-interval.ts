// How often clients without pushes look whether their line moves.

/**
 * While a line moves: the interval of the next in line, and that of the others, who wait for at
 * least a round trip of each claim ahead.
 */
const NEXT_MS = 1
const QUICKEST_MS = 4
const QUICKEST_PER_PLACE_MS = 0.6
/**
 * At rest: this part of the time for which nothing has moved, so that a wait grows by that part at
 * most; more behind the fourth place.
 */
const REST_PART = 1 / 4
const MOST_REST_PART = 1
/**
 * Longest interval of the next in line. It grows with the square of the place, which bounds the
 * load of all clients in a line.
 */
const LONGEST_MS = 125
/**
 * The fewer clients seem to be in the line, the more often each may ask: one that sleeps when the
 * line moves delays all behind it.
 */
const LONGEST_MS_PER_CLIENT = 85
export const LONGEST_OF_ALL_MS = 2000
/** Watched states are polled as if by the third in line. */
export const PLACE_OF_STATES = 3

/** The interval for a client at `place` in line (from 1 on), `restMs` after the line last moved. */
export function waiterMs(place: number, restMs: number, clients = Infinity): number {
  const movingMs = place === 1 ? NEXT_MS : Math.max(QUICKEST_MS, place * QUICKEST_PER_PLACE_MS)
  const restingMs = restMs * Math.min(MOST_REST_PART, REST_PART * Math.max(1, place / 4))
  const shareMs = Math.max(LONGEST_MS, clients * LONGEST_MS_PER_CLIENT)
  const longestMs = Math.min(LONGEST_MS * place ** 2, shareMs, LONGEST_OF_ALL_MS)
  return Math.min(longestMs, Math.max(movingMs, restingMs))
}
