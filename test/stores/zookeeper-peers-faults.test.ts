import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { Holdfast } from '../../src/index.js'
import { zookeeper } from '../../src/stores/zookeeper/index.js'
import { eventually, inTime, now, Watched } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { startZooKeeper, type ZooKeeperServer } from '../servers/zookeeper.js'
import { java, node, obstacles, Peer, python } from './zookeeper/peers.js'

const SESSION_MS = 1500
/** A waiter without a watch would wait for the end of the holder's session. */
const PUSH_WITHIN_MS = 10_000
const OURS = node('lock.mjs')
const PEERS = [
  { name: 'Kazoo', command: python('kazoo_lock.py'), obstacle: obstacles.kazoo },
  { name: 'Curator', command: java('CuratorLock.java'), obstacle: obstacles.curator },
]

describeOn('zookeeper', 'a line shared with others, when somebody fails', () => {
  let server: ZooKeeperServer
  const clients: Holdfast[] = []
  const peers: Peer[] = []
  beforeAll(async () => {
    server = await startZooKeeper()
  })
  afterEach(async () => {
    for (const peer of peers.splice(0)) peer.kill()
    await Promise.all(clients.splice(0).map((each) => each.close({ drain: 0 })))
  })
  afterAll(() => server?.stop())

  const open = (): Holdfast => {
    const options = { root: '/faults', shared: 'curator', sessionTimeout: 20_000, tick: 200 } as const
    const client = new Holdfast(zookeeper(server.address, options))
    clients.push(client)
    return client
  }
  const start = async (command: readonly string[], path: string, sessionMs: number): Promise<Peer> => {
    const peer = new Peer(command, server.address, `/faults/${path}`, String(sessionMs))
    peers.push(peer)
    await peer.says('waiting')
    return peer
  }
  const inLine = async (client: Holdfast, name: string, count: number): Promise<void> =>
    eventually(`${count} in line`, async () => {
      for await (const { holders, waiters } of client.inspect({ prefix: name }))
        return holders.length + waiters.length === count
      return false
    })

  for (const { name, command, obstacle } of PEERS) {
    const why = obstacle ? ` (skipped: ${obstacle})` : ''

    it.skipIf(obstacle)(`${name}: each lets the other in when it is killed${why}`, async () => {
      const lock = open().mutex(`killed-${name}`)
      const victim = await start(command, `killed-${name}`, SESSION_MS)
      await victim.says('held')
      victim.kill()
      const hold = await inTime('our hold', lock.acquire())
      await hold.release()

      const ours = await start(OURS, `killed-${name}`, SESSION_MS)
      await ours.says('held')
      ours.kill()
      const next = await start(command, `killed-${name}`, 20_000)
      await next.says('held')
    })

    it.skipIf(obstacle)(
      `${name}: a peer that stood still beyond its session leaves our lock alone${why}`,
      async () => {
        const lock = open().mutex(`still-${name}`)
        const peer = await start(command, `still-${name}`, SESSION_MS)
        await peer.says('held')
        peer.kill('SIGSTOP')
        const hold = await inTime('our hold', lock.acquire())
        peer.kill('SIGCONT')
        peer.goOn()
        const other = new Watched(open().mutex(`still-${name}`).acquire({ wait: '1s' }))
        await other.promise.catch(() => {})
        expect(hold.isValid).toBe(true)
        expect(await hold.release()).toBe(true)
      },
    )

    it.skipIf(obstacle)(`${name}: we know that we stood still beyond our session${why}`, async () => {
      const ours = await start(OURS, `paused-${name}`, SESSION_MS)
      await ours.says('held')
      ours.kill('SIGSTOP')
      const peer = await start(command, `paused-${name}`, 20_000)
      await peer.says('held')
      ours.kill('SIGCONT')
      ours.goOn()
      await ours.says('lost')
      await ours.says('released')
      await expect(open().mutex(`paused-${name}`).tryAcquire()).resolves.toBeNull()
    })

    it.skipIf(obstacle)(`${name}: each wakes the other${why}`, async () => {
      const client = open()
      const lock = client.mutex(`push-${name}`)
      const hold = await lock.acquire()
      const peer = await start(command, `push-${name}`, 20_000)
      await inLine(client, `push-${name}`, 2)
      const releasedAt = now()
      await hold.release()
      await peer.says('held')
      const toPeerMs = now() - releasedAt
      const waiting = new Watched(lock.acquire())
      await inLine(client, `push-${name}`, 2)
      const freedAt = now()
      peer.goOn()
      await inTime('our hold', waiting.promise)
      const toUsMs = waiting.settledAt - freedAt
      console.log(
        `${name}: woken by us after ${toPeerMs.toFixed(1)} ms, we by it after ${toUsMs.toFixed(1)} ms`,
      )
      expect(Math.max(toPeerMs, toUsMs)).toBeLessThan(PUSH_WITHIN_MS)
    })
  }
})
