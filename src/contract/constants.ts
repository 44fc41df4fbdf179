// The numbers that all stores share. They are interpolated into Lua and SQL, so each is written
// once.

/**
 * The capacity of a mutex or read-write lock, and the permits of an exclusive claim: more than any
 * number of readers.
 */
export const EXCLUSIVE = 2 ** 30

/** The highest fence: the last integer that JavaScript, and Lua in Redis, can count to exactly. */
export const HIGHEST_FENCE = Number.MAX_SAFE_INTEGER

/**
 * How far the highest fence that a client has seen may be ahead of the store's clock; beyond that
 * it is ignored.
 */
export const FLOOR_SKEW_MS = 60_000

/**
 * How many heirs a store names at once. The next ones are named when the last of these is granted.
 */
export const MOST_HEIRS = 16

/** How far a store counts the claims ahead of a waiter. */
export const MOST_AHEAD = 100
