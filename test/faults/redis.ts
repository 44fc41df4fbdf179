import { Holdfast } from '../../src/primitives/holdfast.js'
import { redis } from '../../src/stores/redis/index.js'
import { Crowd } from './crowd.js'
import type { Conflict } from './judge.js'

export { judged, LIMIT_MS, ROUNDS, STALL_MS } from './runs.js'

export const LEASE_MS = 1000

/**
 * A crowd on a Redis: half of its clients with one driver, half with another, a connection for
 * each. Its leases are short, unless told.
 */
export function crowdAt(url: string, askedLeaseMs: number = LEASE_MS): Crowd {
  const clients = ['ioredis', 'redis'].flatMap((driver) =>
    [1, 2, 3].map(() => new Holdfast(redis(`${url}?driver=${driver}`))),
  )
  return new Crowd({ clients, resources: ['one', 'two', 'three'], leaseMs: LEASE_MS, askedLeaseMs })
}

/**
 * Excuses a hold from before a loss of data that meets one from after it. A loss is a moment, or a
 * time between two.
 */
export class Losses {
  readonly #times: { from: number; to: number }[] = []

  add(from: number, to: number): void {
    this.#times.push({ from, to })
  }

  readonly excuse = ({ earlier, later }: Conflict): boolean =>
    this.#times.some(({ from, to }) => earlier.at <= to && later.at >= from)
}
