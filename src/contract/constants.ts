// The numbers that every store agrees on. Lua and SQL get them by interpolation, so that each stands in one place.

/** The capacity of a mutex or read-write lock, and the permits of an exclusive claim: more than any number of readers. */
export const EXCLUSIVE = 2 ** 30

/** The highest fence: the last integer that JavaScript, and Lua in Redis, can count to exactly. */
export const HIGHEST_FENCE = Number.MAX_SAFE_INTEGER

/** How far a client's memory of a fence may run ahead of the store's clock before it is no longer believed. */
export const FLOOR_SKEW_MS = 60_000

/** How many heirs a store names at once; the next ones are named when the last of them is granted. */
export const MOST_HEIRS = 16

/** How many claims ahead of a waiter a store counts, where the waiter has to know. */
export const MOST_AHEAD = 100
