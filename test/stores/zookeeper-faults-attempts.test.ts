import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { EXCLUSIVE } from '../../src/contract/constants.js'
import type { ClaimRequest, Connection, Push } from '../../src/contract/store.js'
import { ZooKeeperClient } from '../../src/drivers/zookeeper/index.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { zookeeper } from '../../src/stores/zookeeper/index.js'
import { eventually, inTime, now, pass, rejectsWith, Watched } from '../../src/testing/conformance/checks.js'
import { LIMIT_MS, ROUNDS } from '../faults/runs.js'
import { describeOn } from '../servers/availability.js'
import { TcpProxy } from '../servers/proxy.js'
import { startZooKeeper, type ZooKeeperServer } from '../servers/zookeeper.js'

const OPTIONS = { sessionTimeout: '20s', tick: 200 } as const
const LEASE_MS = 400
const ROUNDS_EACH = 2 * ROUNDS

/**
 * A request is lost with its connection. The client gives that attempt up after the lease, while the session lives on, and asks again
 * under the same id. What it then does about the first attempt must not touch the second one.
 */
describeOn('zookeeper', 'two attempts of one claim at ZooKeeper', () => {
  let server: ZooKeeperServer
  let way: TcpProxy
  let zk: ZooKeeperClient
  let root: string
  let roots = 0
  const opened: { close(options?: { drain: number }): Promise<void> }[] = []

  beforeAll(async () => {
    server = await startZooKeeper()
    zk = new ZooKeeperClient(server.address)
  })
  afterAll(async () => {
    await zk?.close()
    await server?.stop()
  })
  beforeEach(async () => {
    root = `/attempts-${roots++}`
    way = await TcpProxy.start(server.port)
  })
  afterEach(async () => {
    way.mode = 'pass'
    await Promise.all(opened.splice(0).map((each) => each.close({ drain: 0 })))
    await way.stop()
  })

  const faulty = () => zookeeper(`127.0.0.1:${way.port}`, { ...OPTIONS, root })
  const direct = () => zookeeper(server.address, { ...OPTIONS, root })
  const locks = (store: ReturnType<typeof direct>): Holdfast => {
    const client = new Holdfast(store, { storeTimeout: '30s' })
    opened.push(client)
    return client
  }
  const raw = (): Connection & { pushes: Push[] } => {
    const pushes: Push[] = []
    const push = (news: Push): void => void pushes.push(news)
    const connection = faulty().connect({ id: 'raw', space: 'default', push })
    opened.push(connection)
    return Object.assign(connection, { pushes })
  }
  const claimOf = (leaseMs: number, changes: Partial<ClaimRequest> = {}): ClaimRequest => {
    const times = { leaseMs, presenceMs: leaseMs, maxHoldMs: null }
    const rest = {
      mode: 'queue' as const,
      floor: 0,
      block: 1,
      info: '',
      permits: EXCLUSIVE,
      capacity: EXCLUSIVE,
    }
    return { resource: 'door', id: 'a', ...times, ...rest, ...changes }
  }
  const nodes = async (): Promise<string[]> => (await zk.getChildren(`${root}/default/lines/door`)).children

  /**
   * The call is under way for longer than its lease, then its connection breaks; the answer was lost on the way, or the request was.
   * Until `way` lets one pass, no other connection can be made.
   */
  const losing = async <T>(what: 'stall' | 'lose replies', call: () => Promise<T>): Promise<Watched<T>> => {
    way.mode = what
    const called = new Watched(call())
    await pass(1.5 * LEASE_MS)
    way.mode = 'refuse'
    return called
  }

  it.each([
    ['request', 'stall'],
    ['answer', 'lose replies'],
  ] as const)(
    'the %s is lost: the next one waits for the end of the hold',
    { timeout: LIMIT_MS },
    async (_, what) => {
      const [one, other] = [locks(faulty()), locks(direct())]
      await (await one.mutex('door').acquire()).release()
      const overlaps: number[] = []
      for (let round = 0; round < ROUNDS_EACH; round++) {
        const asking = await losing(what, () => one.mutex('door').acquire({ lease: LEASE_MS }))
        // Long enough that it asks again meanwhile.
        await pass(100)
        way.mode = 'pass'
        const hold = await inTime('the hold', asking.promise)
        const next = other.mutex('door').acquire()
        const isHeldByBoth = next.then(() => hold.isValid)
        const waiting = new Watched(next)
        const until = now() + LEASE_MS
        // With each of its renewals the client cleans up.
        while (now() < until && !waiting.isSettled) await pass(3)
        await hold.release()
        if (await inTime('the next one', isHeldByBoth)) overlaps.push(round)
        await (await next).release()
      }
      expect(overlaps).toEqual([])
    },
  )

  it.each([
    ['request', 'stall'],
    ['answer', 'lose replies'],
  ] as const)('the %s is lost: the node of the second attempt stays, and only that one', async (_, what) => {
    const one = raw()
    await one.claim(claimOf(60_000, { id: 'first' }))
    const first = await losing(what, async () => one.claim(claimOf(LEASE_MS)))
    await rejectsWith('STORE_UNAVAILABLE', first.promise)
    const second = Promise.resolve(one.claim(claimOf(60_000)))
    way.mode = 'pass'
    expect((await inTime('the answer', second)).status).toBe('waiting')
    await one.pulse([])
    await eventually('one node each', async () => (await nodes()).length === 2)
    await one.release('door', 'first')
    await eventually('the grant', () => one.pushes.some(({ type }) => type === 'granted'))
    expect(one.pushes.filter(({ type }) => type === 'lost')).toEqual([])
    expect(await one.release('door', 'a')).toBe(true)
  })
})
