import type { Primitive } from '../base/events.js'

/**
 * To whom a lease may be passed on inside its process:
 * - `neighbours`: requests that wait here for the same thing, and have no place in the store's line
 * - `heirs`: requests whose places in the store's line follow directly
 * - `nobody`
 */
type PassOn = 'neighbours' | 'heirs' | 'nobody'

/** What a caller asks for, checked and in milliseconds. */
export interface RequestSpec {
  readonly resource: string
  readonly permits: number
  readonly capacity: number
  readonly leaseMs: number
  readonly presenceMs: number
  readonly maxHoldMs: number | null
  /** The explicit owner; null: the request itself is the owner. */
  readonly owner: string | null
  readonly label: string | null
  readonly passOn: PassOn
  /** How long the store's grant is kept after the last local hold has gone; 0: not at all. */
  readonly lingerMs: number
  /** Left out: it joins the line, or is tried if its caller does not wait. */
  readonly mode?: 'steal' | 'adopt'
  /** With `adopt`: the hold whose place it takes. */
  readonly adopts?: { readonly id: string; readonly fence: number }
  /** The hold is given up as soon as its client closes: no work has to finish under it. */
  readonly endsAtClose?: boolean
  /** For events. Left out: a mutex, a reader or a semaphore, by its permits. */
  readonly primitive?: Primitive | undefined
  /** Makes the ids of its claims, for a hold that is handed over. Left out: the client does. */
  readonly newId?: () => string
}

/** A specification with what the store shows of the caller. */
export interface Asked {
  readonly spec: RequestSpec
  readonly info: string
}

/** Whether what the store keeps and shows of one is right for the other. */
export function isAlike(one: Asked, other: Asked): boolean {
  const [a, b] = [one.spec, other.spec]
  return (
    one.info === other.info &&
    a.leaseMs === b.leaseMs &&
    a.presenceMs === b.presenceMs &&
    a.permits === b.permits
  )
}

/**
 * Whether several requests of one process share a lease: readers that are passed on to each other.
 */
export function isShared({ passOn, permits, capacity }: RequestSpec): boolean {
  return passOn === 'neighbours' && permits < capacity
}
