import { afterAll, beforeAll, expect, it } from 'vitest'
import { eventually, now, pass } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import type { TcpProxy } from '../servers/proxy.js'
import {
  firstThroughProxies,
  QUICK_ELECTION,
  startZooKeeperEnsemble,
  type ZooKeeperEnsemble,
} from '../servers/zookeeper.js'
import { client, failsWith } from './zookeeper/helpers.js'

const TIMEOUT_MS = 4000
const TICK_MS = 200

/** What we rely on in ZooKeeper's servers, or have to beware of. */
describeOn('zookeeper', 'ZooKeeper', () => {
  let ensemble: ZooKeeperEnsemble
  const proxies: TcpProxy[] = []

  beforeAll(async () => {
    ensemble = await startZooKeeperEnsemble({
      peersOf: firstThroughProxies(proxies),
      config: QUICK_ELECTION,
    })
  })
  afterAll(async () => {
    await ensemble?.stop()
    for (const proxy of proxies) await proxy.stop()
  })

  // LearnerHandler passes a follower's request on without touching the session; touches come with the answers to the leader's pings:
  // https://github.com/apache/zookeeper/blob/release-3.8.0/zookeeper-server/src/main/java/org/apache/zookeeper/server/quorum/LearnerHandler.java
  it('does not take a write through a follower for a sign of life, and a cut-off follower goes on answering', {
    timeout: 120_000,
  }, async () => {
    // If the write counted, the session would never end earlier than a time-out after it: one that does is proof. A machine that stands
    // still at the wrong moment only hides it.
    for (;;) {
      const { livedMs, isKnownAbout } = await lifeAfterWrite()
      expect(isKnownAbout).toBe(true)
      if (livedMs < TIMEOUT_MS) return
    }
  })

  /** How long a session lives after a write, which is the last that its follower passes on. */
  async function lifeAfterWrite(): Promise<{ livedMs: number; isKnownAbout: boolean }> {
    const [follower, , other] = ensemble.members
    expect(await follower?.mode()).toBe('follower')
    const zk = client(follower?.address ?? '', {
      sessionTimeout: TIMEOUT_MS,
      tick: TICK_MS,
      closeTimeout: 100,
    })
    const witness = client(other?.address ?? '', { sessionTimeout: TIMEOUT_MS })
    await zk.create('/sign-of-life', { mode: 'ephemeral' })
    await witness.sync()
    const gone = new Promise<number>((resolve) => {
      void witness.exists('/sign-of-life', { watch: () => resolve(now()) })
    })
    await zk.sync()
    // Long enough for the leader to hear of that, too short for a ping.
    await pass(TIMEOUT_MS / 8)
    const { sentAt, touchedAt } = await zk.create('/a-write-', { mode: 'persistentSequential' })
    for (const proxy of proxies) proxy.mode = 'stall'
    const reads = (async () => {
      for (;;) await zk.exists('/sign-of-life').then(() => pass(50))
    })().catch((error) => error)

    const goneAt = await gone
    for (const proxy of proxies) proxy.mode = 'refuse'
    await reads
    for (const proxy of proxies) proxy.mode = 'pass'
    await zk.hears('expired')
    await failsWith('SESSION_EXPIRED', zk.sync())
    await eventually('all three', async () => (await ensemble.serving()).length === 3)
    return { livedMs: goneAt - sentAt, isKnownAbout: touchedAt < sentAt && goneAt - touchedAt >= TIMEOUT_MS }
  }
})
