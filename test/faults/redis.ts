import { expect } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { redis } from '../../src/stores/redis/index.js'
import { Crowd } from './crowd.js'
import type { Conflict } from './judge.js'

/** `npm run test:faults` has more rounds and longer stalls. */
export const ROUNDS = Number(process.env['HOLDFAST_FAULT_ROUNDS'] ?? 1)
export const STALL_MS = Number(process.env['HOLDFAST_FAULT_STALL_MS'] ?? 3000)
export const LIMIT_MS = 60_000 + ROUNDS * 60_000
export const LEASE_MS = 1000

/** A crowd on a Redis: half of its clients with one driver, half with another, a connection for each. */
export function crowdAt(url: string): Crowd {
  const clients = ['ioredis', 'redis'].flatMap((driver) =>
    [1, 2, 3].map(() => new Holdfast(redis(`${url}?driver=${driver}`))),
  )
  return new Crowd({ clients, resources: ['one', 'two', 'three'], leaseMs: LEASE_MS })
}

/** Ends the crowd; fails where something happened that must not, except for the conflicts that the store's page names. */
export async function judged(crowd: Crowd, mayConflict?: (conflict: Conflict) => boolean): Promise<void> {
  await crowd.end()
  console.log(crowd.judge.summary)
  const nothing = { overlaps: [], lowered: [], lateLosses: [], oddFailures: [], lateRecoveries: [] }
  expect(crowd.judge.faults(mayConflict)).toEqual(nothing)
}

/** Excuses a hold from before a loss of data that meets one from after it. A loss is a moment, or a time between two. */
export class Losses {
  readonly #times: { from: number; to: number }[] = []

  add(from: number, to: number): void {
    this.#times.push({ from, to })
  }

  readonly excuse = ({ earlier, later }: Conflict): boolean =>
    this.#times.some(({ from, to }) => earlier.at <= to && later.at >= from)
}
