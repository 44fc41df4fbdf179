import { HoldfastError } from '../../base/errors.js'
import type { Holdfast } from '../../primitives/holdfast.js'
import type { Lock } from '../../primitives/lock.js'
import type { LockOptions, LockOrder } from '../../primitives/options.js'

/** How a world asks for its locks. */
export interface Mix {
  /** Many tasks want the same lock again and again, mostly with the same options. */
  readonly isHot: boolean
  /** Whether writers may be downgraded, and locks have options of their own. */
  readonly isMixed: boolean
  /** How often a lock of a mixed world has another order than its client. */
  readonly orderRate: number
  /** How often it lingers. */
  readonly lingerRate: number
}

const READ_RATE = 0.3
const LONGEST_LINGER_MS = 1000
const ORDERS: readonly LockOrder[] = ['cohort', 'strict']

/** A lock of that name: for reading or writing, with the options that the world allows. */
export function randomLock(locks: Holdfast, name: string, mix: Mix, random: () => number): Lock {
  const isReader = random() < READ_RATE
  const options = mix.isMixed ? randomOptions(locks, mix, random) : {}
  return isReader ? locks.readWrite(name, options).read : locks.mutex(name, options)
}

function randomOptions(locks: Holdfast, { orderRate, lingerRate }: Mix, random: () => number): LockOptions {
  const order = random() < orderRate ? ORDERS[Math.floor(random() * ORDERS.length)] : undefined
  const isLingering = random() < lingerRate
  const lingerMs = random() * LONGEST_LINGER_MS
  return isLingering && knowsLinger(locks) ? withLinger(order, lingerMs) : { order }
}

function withLinger(order: LockOrder | undefined, linger: number): LockOptions {
  return { order, linger } as LockOptions
}

let isLingerKnown: boolean | undefined

/** Whether this build has the option `linger`. */
function knowsLinger(locks: Holdfast): boolean {
  if (isLingerKnown === undefined) isLingerKnown = acceptsLinger(locks)
  return isLingerKnown
}

function acceptsLinger(locks: Holdfast): boolean {
  try {
    locks.mutex('linger', withLinger(undefined, LONGEST_LINGER_MS))
    return true
  } catch (error) {
    if (error instanceof HoldfastError && error.code === 'INVALID_ARGUMENT') return false
    throw error
  }
}
