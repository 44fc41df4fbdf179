import { expect, it } from 'vitest'
import { pass } from '../../src/testing/conformance/checks.js'
import type { Crowd } from '../faults/crowd.js'
import { etcdClients, etcdCrowd, RECONNECT_MS } from '../faults/etcd.js'
import { judged, LIMIT_MS, ROUNDS, STALL_MS } from '../faults/runs.js'
import { Seats } from '../faults/seats.js'
import { describeOn } from '../servers/availability.js'
import { ending } from '../servers/ending.js'
import { type EtcdCluster, startEtcdCluster } from '../servers/etcd.js'
import { dropPackets, packetLossAvailability } from '../servers/packet-loss.js'
import { TcpProxy } from '../servers/proxy.js'

const noLoss = packetLossAvailability()
/** The suite has a part of them, for its time. */
const isLong = process.env['HOLDFAST_FAULT_ROUNDS'] !== undefined
const limit = { timeout: LIMIT_MS + 2 * ROUNDS * STALL_MS }

describeOn('etcd', 'faults of etcd servers, while many contend', () => {
  const start = async (): Promise<EtcdCluster> => ending(await startEtcdCluster())

  async function crowdOn(): Promise<{ cluster: EtcdCluster; crowd: Crowd }> {
    const cluster = await start()
    return { cluster, crowd: etcdCrowd(cluster.address) }
  }

  /** The address of all servers, each behind a proxy. */
  async function behindProxies({ members }: EtcdCluster): Promise<{ address: string; proxies: TcpProxy[] }> {
    const proxies = await Promise.all(members.map(({ port }) => TcpProxy.start(port)))
    for (const proxy of proxies) ending(proxy)
    return { address: proxies.map(({ port }) => `127.0.0.1:${port}`).join(','), proxies }
  }

  it('kill -9 of the leader, and of another one', limit, async () => {
    const { cluster, crowd } = await crowdOn()
    for (let round = 0; round < ROUNDS; round++)
      for (const rank of ['leader', 'follower'] as const) {
        await crowd.granted(30)
        const { leader, followers } = await cluster.ranked()
        const victim = rank === 'leader' ? leader : followers[0]
        await victim?.kill()
        await crowd.granted(30)
        await victim?.start()
        await crowd.recovered(RECONNECT_MS)
      }
    await judged(crowd)
  })

  it.runIf(isLong)('the leader stands still, and wakes up when another one leads', limit, async () => {
    const { cluster, crowd } = await crowdOn()
    for (let round = 0; round < ROUNDS; round++) {
      await crowd.granted(30)
      const { leader } = await cluster.ranked()
      leader.pause()
      await pass(STALL_MS)
      await crowd.granted(30)
      leader.resume()
      await crowd.recovered(RECONNECT_MS)
    }
    await judged(crowd)
  })

  it.runIf(isLong)('all servers stand still for longer than the lease', limit, async () => {
    const { cluster, crowd } = await crowdOn()
    for (let round = 0; round < ROUNDS; round++) {
      await crowd.granted(30)
      for (const member of cluster.members) member.pause()
      await pass(STALL_MS)
      for (const member of cluster.members) member.resume()
      await crowd.recovered(RECONNECT_MS)
    }
    await judged(crowd)
  })

  it.runIf(isLong && noLoss === null)(
    'servers do not hear the leader, and then not its clients',
    limit,
    async () => {
      const { cluster, crowd } = await crowdOn()
      for (let round = 0; round < ROUNDS; round++)
        for (const side of ['peerPort', 'port'] as const) {
          await crowd.granted(30)
          const { leader } = await cluster.ranked()
          const loss = await dropPackets(leader[side], 1)
          await pass(STALL_MS)
          loss.heal()
          await crowd.recovered(RECONNECT_MS)
        }
      await judged(crowd)
    },
  )

  it('connections are cut, and the history is compacted all the time: mutexes', limit, async () => {
    const cluster = await start()
    const { address, proxies } = await behindProxies(cluster)
    const crowd = etcdCrowd(address)
    let cuts = 0
    for (let round = 0; round < 10 * ROUNDS; round++)
      for (const [index, proxy] of proxies.entries()) {
        await crowd.granted(3)
        cuts += proxy.openConnections
        proxy.cut()
        await cluster.members[index]?.compact()
      }
    expect(cuts).toBeGreaterThan(0)
    await crowd.recovered(RECONNECT_MS)
    await judged(crowd)
  })

  it('replies are lost: seats and tables', limit, async () => {
    const cluster = await start()
    const { address, proxies } = await behindProxies(cluster)
    const seats = new Seats(etcdClients(address, 5))
    let losses = 0
    for (let round = 0; round < 10 * ROUNDS; round++)
      for (const proxy of proxies) {
        await seats.granted(3)
        const { down } = proxy.bytes
        proxy.mode = 'lose replies'
        for (let count = 0; count < 100 && proxy.bytes.down === down; count++) await pass(3)
        if (proxy.bytes.down > down) losses++
        proxy.mode = 'pass'
      }
    expect(losses).toBeGreaterThan(0)
    await seats.served()
    await seats.judged()
  })
})
