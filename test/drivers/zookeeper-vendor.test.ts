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

  // PrepRequestProcessor takes the number from the parent's cversion, which only creations raise:
  // https://github.com/apache/zookeeper/blob/release-3.8.0/zookeeper-server/src/main/java/org/apache/zookeeper/server/PrepRequestProcessor.java
  it('numbers children by how many were ever made, of whatever kind, and not by how many have left', async () => {
    const zk = client(ensemble.address)
    const number = async (): Promise<number> =>
      Number((await zk.create('/line/n-', { mode: 'ephemeralSequential' })).path.slice('/line/n-'.length))
    await zk.create('/line', { mode: 'container' })
    expect(await number()).toBe(0)
    await zk.create('/line/plain')
    expect(await number()).toBe(2)
    await zk.delete('/line/n-0000000000')
    await zk.setData('/line', 'x')
    expect(await number()).toBe(3)
    await zk.multi([
      { type: 'delete', path: '/line/plain' },
      { type: 'create', path: '/line/other', mode: 'ephemeral' },
    ])
    expect(await number()).toBe(5)
    for (const name of (await zk.getChildren('/line')).children) await zk.delete(`/line/${name}`)
    expect(await number()).toBe(6)
    await zk.delete('/line/n-0000000006')
    await zk.delete('/line')
    await zk.create('/line', { mode: 'container' })
    expect(await number()).toBe(0)
  })

  // DataTree carries the operations of a multi out one after the other, and a watch is gone when it has fired:
  // https://github.com/apache/zookeeper/blob/release-3.8.0/zookeeper-server/src/main/java/org/apache/zookeeper/server/DataTree.java
  it('tells of a node that is written to and deleted in one multi as changed, once, at whatever server', async () => {
    const watchers = ensemble.members.map(({ address }) => client(address))
    const zk = client(ensemble.address)
    await zk.create('/word')
    const heard: string[][] = await Promise.all(
      watchers.map(async (watcher) => {
        const events: string[] = []
        await watcher.sync()
        await watcher.getData('/word', { watch: ({ type }) => events.push(type) })
        return events
      }),
    )
    await zk.multi([
      { type: 'set', path: '/word', data: '' },
      { type: 'delete', path: '/word' },
    ])
    await eventually('a word for everybody', () => heard.every((events) => events.length > 0))
    for (const watcher of watchers) await watcher.sync()
    expect(heard).toEqual(watchers.map(() => ['changed']))
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
