import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually, inTime, now, pass, rejectsWith } from '../../src/testing/conformance/checks.js'
import { LIMIT_MS, ROUNDS, STALL_MS } from '../faults/runs.js'
import { Seats } from '../faults/seats.js'
import { clientAt, SESSION_MS, serving, ZooKeeperCrowd } from '../faults/zookeeper.js'
import { type CutKind, type CutMoment, CuttingProxy } from '../faults/zookeeper-proxy.js'
import { describeOn } from '../servers/availability.js'
import { ending } from '../servers/ending.js'
import { dropPackets, packetLossAvailability } from '../servers/packet-loss.js'
import { TcpProxy } from '../servers/proxy.js'
import { firstThroughProxies, startZooKeeperEnsemble, type ZooKeeperEnsemble } from '../servers/zookeeper.js'

const noLoss = packetLossAvailability()
/** Longer than a session. */
const FREEZE_MS = Math.max(STALL_MS, SESSION_MS + 500)
const CUTS_A_ROUND = 3

type Cut = (kind: CutKind, moment: CutMoment) => Promise<void>

describeOn('zookeeper', 'faults on the way to ZooKeeper', () => {
  /** Each test leaves it as it was. */
  let ensemble: ZooKeeperEnsemble
  beforeAll(async () => {
    ensemble = await startZooKeeperEnsemble()
  })
  afterAll(() => ensemble?.stop())

  describe('the connection is cut in the middle of everything, before the request has arrived and after', () => {
    const cutting = async (): Promise<{ servers: string; address: string; cut: Cut }> => {
      const proxies: CuttingProxy[] = []
      for (const { port } of ensemble.members) proxies.push(ending(await CuttingProxy.start(port)))
      const address = proxies.map(({ port }) => `127.0.0.1:${port}`).join(',')
      const cut: Cut = async (kind, moment) =>
        inTime(`a cut ${moment} ${kind}`, Promise.race(proxies.map((proxy) => proxy.cutAt(kind, moment))))
      return { servers: ensemble.address, address, cut }
    }

    it('mutexes', { timeout: LIMIT_MS }, async () => {
      const { servers, address, cut } = await cutting()
      const crowd = new ZooKeeperCrowd([address])
      for (let round = 0; round < ROUNDS * CUTS_A_ROUND; round++)
        for (const kind of ['create', 'delete', 'watch', 'list', 'multi', 'event'] as const)
          for (const moment of ['before', 'after'] as const) {
            await crowd.granted(3)
            await cut(kind, moment)
          }
      await crowd.recovered(SESSION_MS)
      await crowd.judged(servers)
    })

    it('seats and tables', { timeout: LIMIT_MS }, async () => {
      const { address, cut } = await cutting()
      const seats = new Seats([1, 2, 3, 0, 0].map((number) => clientAt(address, number)))
      for (let round = 0; round < ROUNDS * CUTS_A_ROUND; round++)
        for (const kind of ['create', 'delete', 'watch', 'list', 'multi', 'set data', 'event'] as const)
          for (const moment of ['before', 'after'] as const) {
            await seats.granted(3)
            await cut(kind, moment)
          }
      await seats.served()
      await seats.judged()
    })
  })

  it('a follower is cut off from its leader, and goes on answering', { timeout: LIMIT_MS }, async () => {
    const links: TcpProxy[] = []
    // So late that its clients' sessions are over long before it gives its leader up.
    const config = { syncLimit: '100' }
    const own = ending(await startZooKeeperEnsemble({ peersOf: firstThroughProxies(links), config }))
    for (const link of links) ending(link)
    const [follower] = own.members
    expect(await follower?.mode()).toBe('follower')
    // Half of them know no other server.
    const crowd = new ZooKeeperCrowd([follower?.address ?? '', own.address])
    for (let round = 0; round < ROUNDS; round++) {
      await crowd.granted(30)
      for (const link of links) link.mode = 'stall'
      await pass(FREEZE_MS)
      await crowd.granted(30)
      for (const link of links) link.mode = 'pass'
      await serving(own, 3)
      await crowd.recovered(SESSION_MS)
    }
    await crowd.judged(own.address)
  })

  it.skipIf(noLoss)(
    `three packets in ten are lost${noLoss ? ` (skipped: ${noLoss})` : ''}`,
    { timeout: LIMIT_MS },
    async () => {
      const crowd = new ZooKeeperCrowd([ensemble.address])
      for (let round = 0; round < ROUNDS; round++) {
        await crowd.granted(30)
        const from = now()
        const losses = await Promise.all(ensemble.members.map(({ port }) => dropPackets(port, 0.3)))
        await pass(STALL_MS)
        // Each of them costs several exchanges, and every second exchange waits for TCP's repetitions.
        await crowd.granted(10)
        for (const loss of losses) loss.heal()
        // TCP doubles its pauses: a connection that was silent for a time can be so for as long again.
        await crowd.recovered(now() - from + SESSION_MS)
      }
      await crowd.judged(ensemble.address)
    },
  )

  it('a hold whose time was over while its session lives on keeps nobody waiting', async () => {
    const [member] = ensemble.members
    const proxy = ending(await TcpProxy.start(member?.port ?? 0))
    const [unheard, other] = [clientAt(`127.0.0.1:${proxy.port}`, 1), clientAt(ensemble.address, 2)]
    const hold = await unheard.mutex('door').acquire({ lease: '10m' })
    const next = other.mutex('door').acquire()
    // The server hears of it all the time.
    proxy.mode = 'lose replies'
    await eventually('the loss', () => hold.signal.aborted)
    proxy.mode = 'pass'
    await inTime('the next one', next)
    await unheard.close()
    await other.close()
  })

  it('a release that does not get through keeps nobody waiting for longer than that', async () => {
    const [member] = ensemble.members
    const proxy = ending(await CuttingProxy.start(member?.port ?? 0))
    const [unheard, other] = [clientAt(`127.0.0.1:${proxy.port}`, 1), clientAt(ensemble.address, 2)]
    const hold = await unheard.mutex('door').acquire({ lease: '10m' })
    const next = other.mutex('door').acquire()
    const letPass = proxy.cutAll('delete', 'before')
    await rejectsWith('STORE_UNAVAILABLE', hold.release())
    letPass()
    await inTime('the next one', next)
    await unheard.close()
    await other.close()
  })

  it('all connections stall, and go on', { timeout: LIMIT_MS }, async () => {
    const proxies: TcpProxy[] = []
    for (const { port } of ensemble.members) proxies.push(ending(await TcpProxy.start(port)))
    const crowd = new ZooKeeperCrowd([proxies.map(({ port }) => `127.0.0.1:${port}`).join(',')])
    for (let round = 0; round < ROUNDS; round++) {
      await crowd.granted(30)
      for (const proxy of proxies) proxy.mode = 'stall'
      await pass(FREEZE_MS)
      for (const proxy of proxies) proxy.mode = 'pass'
      await crowd.recovered(SESSION_MS)
    }
    await crowd.judged(ensemble.address)
  })
})
