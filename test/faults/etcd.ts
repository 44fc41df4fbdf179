import { Holdfast } from '../../src/primitives/holdfast.js'
import { etcd } from '../../src/stores/etcd/index.js'
import { Crowd } from './crowd.js'

const RESOURCES = ['one', 'two', 'three']
/** How long a hold outlives its process. */
const LEASE_MS = 3000
/** After a fault the servers elect a leader, and the clients connect again. */
export const RECONNECT_MS = 5000

export function etcdClients(address: string, count: number): Holdfast[] {
  return Array.from({ length: count }, () => new Holdfast(etcd(address, { ttl: LEASE_MS })))
}

/** Six clients that contend for three mutexes. */
export function etcdCrowd(address: string): Crowd {
  const clients = etcdClients(address, 6)
  return new Crowd({ clients, resources: RESOURCES, leaseMs: LEASE_MS, askedLeaseMs: 10 * LEASE_MS })
}
