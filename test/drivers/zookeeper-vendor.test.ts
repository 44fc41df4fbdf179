import { afterAll, beforeAll, expect, it } from 'vitest'
import { now, pass } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import type { TcpProxy } from '../servers/proxy.js'
import { firstThroughProxies, startZooKeeperEnsemble, type ZooKeeperEnsemble } from '../servers/zookeeper.js'
import { client, failsWith } from './zookeeper/helpers.js'

const TIMEOUT_MS = 4000
const TICK_MS = 200

/** What we rely on in ZooKeeper's servers, or have to beware of. */
describeOn('zookeeper', 'ZooKeeper', () => {
  let ensemble: ZooKeeperEnsemble
  const proxies: TcpProxy[] = []

  beforeAll(async () => {
    ensemble = await startZooKeeperEnsemble({ peersOf: firstThroughProxies(proxies) })
  })
  afterAll(async () => {
    await ensemble?.stop()
    for (const proxy of proxies) await proxy.stop()
  })

  // LearnerHandler passes a follower's request on without touching the session; touches come with the answers to the leader's pings:
  // https://github.com/apache/zookeeper/blob/release-3.8.0/zookeeper-server/src/main/java/org/apache/zookeeper/server/quorum/LearnerHandler.java
  it('does not take a write through a follower for a sign of life, and a cut-off follower goes on answering', async () => {
    const [follower, , other] = ensemble.members
    expect(await follower?.mode()).toBe('follower')
    const zk = client(follower?.address ?? '', {
      sessionTimeout: TIMEOUT_MS,
      tick: TICK_MS,
      closeTimeout: 100,
    })
    const witness = client(other?.address ?? '', { sessionTimeout: TIMEOUT_MS })
    await zk.create('/sign-of-life', { mode: 'ephemeral' })
    const gone = new Promise<number>((resolve) => {
      void witness.exists('/sign-of-life', { watch: () => resolve(now()) })
    })
    await zk.sync()
    // Long enough for the leader to hear of that, too short for a ping.
    await pass(TIMEOUT_MS / 8)
    const { sentAt, touchedAt } = await zk.create('/a-write')
    for (const proxy of proxies) proxy.mode = 'stall'
    const reads = (async () => {
      for (;;) await zk.exists('/sign-of-life').then(() => pass(50))
    })().catch((error) => error)

    const goneAt = await gone
    expect(goneAt - touchedAt).toBeGreaterThanOrEqual(TIMEOUT_MS)
    // The write did not count: the session ended earlier than a time-out after it.
    expect(goneAt - sentAt).toBeLessThan(TIMEOUT_MS)
    expect(touchedAt).toBeLessThan(sentAt)
    for (const proxy of proxies) proxy.mode = 'refuse'
    await reads
    for (const proxy of proxies) proxy.mode = 'pass'
    await zk.hears('expired')
    await failsWith('SESSION_EXPIRED', zk.sync())
  })
})
