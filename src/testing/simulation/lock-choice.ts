import { HoldfastError } from '../../base/errors.js'
import type { Holdfast } from '../../primitives/holdfast.js'
import type { Lock } from '../../primitives/lock.js'
import type { LockOptions, LockOrder } from '../../primitives/options.js'
import type { Tally } from './witness.js'

/** How a world asks for its locks. */
export interface Mix {
  /** Many tasks want the same lock again and again, mostly with the same options. */
  readonly isHot: boolean
  /** Whether writers may be downgraded, and locks have options of their own. */
  readonly isMixed: boolean
  /** How often a lock is taken for reading. */
  readonly readRate: number
  /** How often a lock of a mixed world has another order than its client. */
  readonly orderRate: number
  /** How often it lingers. */
  readonly lingerRate: number
}

const LONGEST_LINGER_MS = 1000
const ORDERS: readonly LockOrder[] = ['cohort', 'strict']

/** What draws a lock: the client of a process, its randomness, and where uses are counted. */
interface Draw {
  readonly locks: Holdfast
  readonly mix: Mix
  readonly tally: Tally
  random(): number
}

/** A lock of that name: for reading or writing, with the options that the world allows. */
export function randomLock(name: string, { locks, mix, tally, random }: Draw): Lock {
  const isReader = random() < mix.readRate
  const take = (options: LockOptions): Lock =>
    isReader ? locks.readWrite(name, options).read : locks.mutex(name, options)
  if (!mix.isMixed) return take({})
  const order = random() < mix.orderRate ? ORDERS[Math.floor(random() * ORDERS.length)] : undefined
  const [isToLinger, lingerMs] = [random() < mix.lingerRate, random() * LONGEST_LINGER_MS]
  const lingering = isToLinger ? ifKnown(() => take(withLinger(order, lingerMs))) : undefined
  if (lingering) tally.lingering++
  return lingering ?? take({ order })
}

/** undefined: this build or this kind of lock does not have the option `linger`. */
export function lingeringMutex(locks: Holdfast, name: string, lingerMs: number): Lock | undefined {
  return ifKnown(() => locks.mutex(name, withLinger(undefined, lingerMs)))
}

function withLinger(order: LockOrder | undefined, linger: number): LockOptions {
  return { order, linger } as LockOptions
}

function ifKnown(take: () => Lock): Lock | undefined {
  try {
    return take()
  } catch (error) {
    if (error instanceof HoldfastError && error.code === 'INVALID_ARGUMENT') return undefined
    throw error
  }
}
