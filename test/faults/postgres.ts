import { Holdfast } from '../../src/primitives/holdfast.js'
import { postgres } from '../../src/stores/postgres/index.js'
import { Crowd } from './crowd.js'

export { judged, LIMIT_MS, ROUNDS, STALL_MS } from './runs.js'

/** Longer than a busy machine stands still. */
const LEASE_MS = 3000

/**
 * A crowd on a PostgreSQL: half of its clients with one driver, half with the other, a pool for
 * each.
 */
export function crowdAt(url: string): Crowd {
  const clients = (['pg', 'postgres'] as const).flatMap((driver) =>
    [1, 2, 3].map(() => new Holdfast(postgres(url, { driver, connections: 3 }))),
  )
  return new Crowd({ clients, resources: ['one', 'two', 'three'], leaseMs: LEASE_MS })
}
