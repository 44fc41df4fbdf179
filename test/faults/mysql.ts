import { Holdfast } from '../../src/primitives/holdfast.js'
import { mysql } from '../../src/stores/mysql/index.js'
import { Crowd } from './crowd.js'

export { judged, LIMIT_MS, ROUNDS, STALL_MS } from './runs.js'

/** Longer than a busy machine stands still. */
export const LEASE_MS = 3000

/**
 * A crowd on a MySQL server: half of its clients with one driver, half with the other, a pool for
 * each.
 */
export function crowdAt(url: string): Crowd {
  const clients = (['mysql2', 'mariadb'] as const).flatMap((driver) =>
    [1, 2, 3].map(() => new Holdfast(mysql(url, { driver, connections: 3 }))),
  )
  return new Crowd({ clients, resources: ['one', 'two', 'three'], leaseMs: LEASE_MS })
}
