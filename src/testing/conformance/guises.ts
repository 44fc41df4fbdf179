import { EXCLUSIVE } from '../../contract/constants.js'
import { type LockKind, MUTEX } from '../lock-kinds.js'

/**
 * The locks that exclude as a mutex does: whatever is true of a mutex, and not about re-entry, must
 * be true of each of them.
 */
export type GuiseName = 'mutex' | 'writer' | 'only permit' | 'last permit'

/** What a case about locks in general is run with. */
export interface Guise {
  readonly name: GuiseName
  readonly lock: LockKind
  /** What such a lock asks a store for. */
  readonly wants: { readonly permits: number; readonly capacity: number }
  /** How many permits somebody else holds all the time. */
  readonly taken: number
}

const WHOLE = { permits: EXCLUSIVE, capacity: EXCLUSIVE }

export const GUISES: readonly Guise[] = [
  { name: 'mutex', lock: MUTEX, wants: WHOLE, taken: 0 },
  { name: 'writer', lock: { kind: 'write' }, wants: WHOLE, taken: 0 },
  {
    name: 'only permit',
    lock: { kind: 'semaphore', capacity: 1 },
    wants: { permits: 1, capacity: 1 },
    taken: 0,
  },
  {
    name: 'last permit',
    lock: { kind: 'semaphore', capacity: 5 },
    wants: { permits: 1, capacity: 5 },
    taken: 4,
  },
]

/** Why a case is not run in a guise. */
export type NotAs = Readonly<Partial<Record<GuiseName, string>>>

function notAs(reason: string, ...names: GuiseName[]): NotAs {
  return Object.fromEntries(names.map((name) => [name, reason]))
}

/**
 * For cases that show the same thing for every lock, because they are about what all of them have
 * in common.
 */
export const MUTEX_ALONE = {
  names: notAs('names are the same for every lock', 'writer', 'only permit', 'last permit'),
  load: notAs('is about many claims, not about what they ask for', 'writer', 'only permit', 'last permit'),
}

export const NEEDS_REENTRY: NotAs = notAs('a semaphore is not re-entrant', 'only permit', 'last permit')

/** For cases that look at everybody who holds. */
export const MINDS_OTHERS: NotAs = notAs('somebody else holds four permits of it all the time', 'last permit')
