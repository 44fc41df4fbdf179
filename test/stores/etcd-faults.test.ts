import { afterEach, expect, it } from 'vitest'
import { EtcdClient } from '../../src/drivers/etcd/index.js'
import { Holdfast } from '../../src/index.js'
import { etcd } from '../../src/stores/etcd/index.js'
import { eventually } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { type EtcdCluster, type EtcdServer, startEtcd, startEtcdCluster } from '../servers/etcd.js'
import { TcpProxy } from '../servers/proxy.js'

const TTL = '10s'
const endings: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end()
})

function locksAt(address: string, ttl: '10s' | '2s' = TTL): Holdfast {
  const locks = new Holdfast(etcd(address, { ttl, stallTimeout: '1s' }))
  endings.push(() => locks.close())
  return locks
}

async function cluster(): Promise<EtcdCluster> {
  const servers = await startEtcdCluster()
  endings.push(() => servers.stop())
  return servers
}

function isAwaited(locks: Holdfast): Promise<void> {
  return eventually('a waiter', async () => {
    for await (const { waiters } of locks.inspect()) if (waiters.length === 1) return true
    return false
  })
}

/** One client holds, another waits; both must not notice what happens to the servers meanwhile. */
async function survives(
  { address, members }: { address: string; members: readonly EtcdServer[] },
  harm: () => unknown,
): Promise<void> {
  const [one, other] = [locksAt(address), locksAt(address)]
  const hold = await one.mutex('door').acquire()
  const waiting = other.mutex('door').acquire({ wait: '30s' })
  await isAwaited(one)
  await harm()
  // The servers that are left elect a leader, if they have to, and answer within the lease.
  await hold.extend('5s')
  expect(hold.isValid).toBe(true)
  await hold.release()
  const next = await waiting
  expect(next.fence).toBeGreaterThan(hold.fence)
  await next.release()
  for (const member of members) member.resume()
}

describeOn('etcd', 'three etcd servers', () => {
  it.each(['kill', 'pause'] as const)('%s of the leader: holds and places are kept', async (harm) => {
    const servers = await cluster()
    const { leader } = await servers.ranked()
    await survives(servers, () => leader[harm]())
  })

  it.each(['kill', 'pause'] as const)('%s of a follower that all clients use: the same', async (harm) => {
    const servers = await cluster()
    const { leader, followers } = await servers.ranked()
    const [used, spare] = followers as [EtcdServer, EtcdServer]
    // Only through the one that is harmed, until it is.
    const proxies = await Promise.all([leader, spare].map(({ port }) => TcpProxy.start(port)))
    endings.push(() => Promise.all(proxies.map((proxy) => proxy.stop())))
    for (const proxy of proxies) proxy.mode = 'refuse'
    const address = [used.address, ...proxies.map(({ port }) => `127.0.0.1:${port}`)].join(',')
    await survives({ address, members: servers.members }, async () => {
      for (const proxy of proxies) proxy.mode = 'pass'
      await used[harm]()
    })
  })

  it('a server that was asleep while another led does not lengthen a lease by its answers', async () => {
    const servers = await cluster()
    const { leader } = await servers.ranked()
    const client = new EtcdClient(leader.address, { requestTimeout: '20s', stallTimeout: '60s' })
    endings.push(() => client.close())
    const lease = client.lease(4000, 'a', () => {})
    await lease.ready()
    leader.pause()
    const before = lease.validUntil
    const renewal = lease.renew().catch(() => {})
    await eventually('another leader', async () => (await others(servers, leader)).length === 1)
    leader.resume()
    await renewal
    // Answered or not: without the word of a majority of the same term it counts for nothing.
    expect(lease.validUntil).toBe(before)
  })
})

describeOn('etcd', 'one etcd server', () => {
  const start = async (): Promise<EtcdServer> => {
    const server = await startEtcd()
    endings.push(() => server.stop())
    return server
  }

  it('a waiter survives a compaction while it is cut off', async () => {
    const server = await start()
    const proxy = await TcpProxy.start(server.port)
    endings.push(() => proxy.stop())
    const [holder, waiter] = [locksAt(server.address), locksAt(`127.0.0.1:${proxy.port}`)]
    const hold = await holder.mutex('door').acquire()
    const waiting = waiter.mutex('door').acquire({ wait: '30s' })
    await isAwaited(holder)
    proxy.mode = 'refuse'
    await hold.release()
    const client = new EtcdClient(server.address)
    endings.push(() => client.close())
    for (let count = 0; count < 10; count++) await client.put('other', String(count))
    await server.compact()
    proxy.mode = 'pass'
    const next = await waiting
    expect(next.fence).toBeGreaterThan(hold.fence)
  })

  it('a lease that is revoked takes its holds, and the next claim gets a new one', async () => {
    const server = await start()
    const [victim, witness] = [locksAt(server.address, '2s'), locksAt(server.address)]
    const hold = await victim.mutex('door').acquire()
    const key = (await server.ctl('get', '--prefix', '--keys-only', 'holdfast/default/clients/')).trim()
    await server.ctl('lease', 'revoke', key.slice(key.lastIndexOf('/') + 1))
    const next = await witness.mutex('door').acquire()
    await eventually('the loss', () => !hold.isValid)
    await next.release()
    const again = await victim.mutex('door').acquire()
    expect(again.fence).toBeGreaterThan(next.fence)
    await again.release()
  })

  it('restarts with its data: holds and places are kept', async () => {
    const server = await start()
    await survives({ address: server.address, members: [server] }, () => server.restart({ keepData: true }))
  })
})

async function others(servers: EtcdCluster, not: EtcdServer): Promise<EtcdServer[]> {
  const rest = servers.members.filter((member) => member !== not)
  const isLeader = await Promise.all(rest.map((member) => member.isLeader().catch(() => false)))
  return rest.filter((_, index) => isLeader[index])
}
