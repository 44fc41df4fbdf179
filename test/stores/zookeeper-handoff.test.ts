import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { EXCLUSIVE } from '../../src/contract/constants.js'
import type { ClaimReply, ClaimRequest, Connection, Push } from '../../src/contract/store.js'
import { ZooKeeperClient } from '../../src/drivers/zookeeper/index.js'
import { isAlone } from '../../src/stores/zookeeper/emptied.js'
import { zookeeper } from '../../src/stores/zookeeper/index.js'
import { eventually } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { TcpProxy } from '../servers/proxy.js'
import { startZooKeeper, type ZooKeeperServer } from '../servers/zookeeper.js'

const MINUTE_MS = 60_000
const LASTING = { leaseMs: 10 * MINUTE_MS, presenceMs: 10 * MINUTE_MS }

function claimOf(id: string, changes: Partial<ClaimRequest> = {}): ClaimRequest {
  const rest = { maxHoldMs: null, mode: 'queue' as const, floor: 0, block: 1, info: '' }
  return { resource: 'door', id, permits: EXCLUSIVE, capacity: EXCLUSIVE, ...LASTING, ...rest, ...changes }
}

type Client = Connection & { readonly pushes: Push[]; granted(): (Push & { type: 'granted' })[] }

const byNumber = (one: string, other: string): number => Number(one.slice(-10)) - Number(other.slice(-10))

const fenceIn = (reply: ClaimReply): number => (reply.status === 'granted' ? reply.fence : Number.NaN)

describe('a line that was left empty', () => {
  it('is still so if the next number is ours, and its node cannot be a new one', () => {
    const departure = { sequence: 99, zxid: 5000n }
    expect(isAlone(100, 5001n, departure)).toBe(true)
    expect(isAlone(100, 5049n, departure)).toBe(true)
    expect(isAlone(100, 5050n, departure)).toBe(false)
    expect(isAlone(101, 5001n, departure)).toBe(false)
    expect(isAlone(99, 5001n, departure)).toBe(false)
    // After an election, the number of a transaction says nothing of how many there were.
    expect(isAlone(100, (1n << 32n) + 1n, departure)).toBe(false)
    // Nor if the servers have lost what they had.
    expect(isAlone(100, 4000n, departure)).toBe(false)
    expect(isAlone(-5, 5001n, { sequence: -6, zxid: 5000n })).toBe(false)
  })
})

describeOn('zookeeper', 'hand-off among the sessions of a ZooKeeper server', () => {
  let server: ZooKeeperServer
  let zk: ZooKeeperClient
  let root: string
  let roots = 0
  let sessions = 0
  const opened: { close(options?: { drain: number }): Promise<void> }[] = []
  const proxies: TcpProxy[] = []

  beforeAll(async () => {
    server = await startZooKeeper()
    zk = new ZooKeeperClient(server.address)
  })
  afterAll(async () => {
    await zk?.close()
    await server?.stop()
  })
  beforeEach(() => {
    root = `/root-${roots++}`
  })
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((each) => each.close({ drain: 0 })))
    await Promise.all(proxies.splice(0).map((proxy) => proxy.stop()))
  })

  /** A client with a session of its own. */
  const client = (address = server.address, onPush: (news: Push) => void = () => {}): Client => {
    const pushes: Push[] = []
    const options = { sessionTimeout: MINUTE_MS - sessions++, tick: 200, root }
    const push = (news: Push): void => {
      pushes.push(news)
      onPush(news)
    }
    const connection = zookeeper(address, options).connect({ id: 'client', space: 's', push })
    opened.push(connection)
    return Object.assign(connection, {
      pushes,
      granted: () => pushes.filter((push) => push.type === 'granted'),
    })
  }

  /** A holder that had to wait, so that it knows of a contended line when it leaves; and what it waited for is gone. */
  const holderThatWaited = async (): Promise<Client> => {
    const [before, holder] = [client(), client()]
    await before.claim(claimOf('before'))
    await holder.claim(claimOf('holder'))
    await before.release('door', 'before')
    await eventually('the holder', () => holder.granted().length === 1)
    return holder
  }

  it('the next one holds at the holder’s word, and asks for nothing', async () => {
    const holder = await holderThatWaited()
    const proxy = await TcpProxy.start(server.port)
    proxies.push(proxy)
    let bytesAtGrant = 0
    const next = client(`127.0.0.1:${proxy.port}`, ({ type }) => {
      if (type === 'granted') bytesAtGrant = proxy.bytes.up
    })
    await next.claim(claimOf('next'))
    // What is done for those that last is done, and answered.
    await next.pulse([{ resource: 'door', id: 'next', ...LASTING }])
    await next.pulse([])
    const bytesBefore = proxy.bytes.up
    await holder.release('door', 'holder')
    await eventually('the next one', () => next.granted().length === 1)
    expect(bytesAtGrant).toBe(bytesBefore)
    expect(next.granted()[0]?.fence).toBeGreaterThan(holder.granted()[0]?.fence ?? Infinity)
    expect(await next.release('door', 'next')).toBe(true)
  })

  it('the end of a waiter, be it withdrawn or dead, lets nobody in', async () => {
    const holder = await holderThatWaited()
    const [withdrawn, dead, last] = [client(), client(), client()]
    await withdrawn.claim(claimOf('withdrawn'))
    await dead.claim(claimOf('dead'))
    await last.claim(claimOf('last'))
    await dead.close()
    await last.pulse([])
    await withdrawn.release('door', 'withdrawn')
    const [reply] = await last.pulse([{ resource: 'door', id: 'last', ...LASTING }])
    expect(reply?.status).toBe('waiting')
    expect(last.granted()).toEqual([])
    await holder.release('door', 'holder')
    await eventually('the last one', () => last.granted().length === 1)
  })

  it('a waiter that was cancelled just after it came does not hold beside the next one', async () => {
    const holder = await holderThatWaited()
    const [waiter, next, operator] = [client(), client(), client()]
    await waiter.claim(claimOf('waiter'))
    await next.claim(claimOf('next'))
    expect(await operator.cancel('door', 'waiter')).toHaveLength(1)
    await holder.release('door', 'holder')
    await eventually('the loss', () => waiter.pushes.some(({ type }) => type === 'lost'))
    await eventually('the next one', () => next.granted().length === 1)
    expect(waiter.granted()).toEqual([])
  })

  it('nor does one that waited behind a claim of its own client', async () => {
    const holder = await holderThatWaited()
    const [next, operator] = [client(), client()]
    await holder.claim(claimOf('waiter'))
    await next.claim(claimOf('next'))
    expect(await operator.cancel('door', 'waiter')).toHaveLength(1)
    await holder.release('door', 'holder')
    await eventually('the loss', () => holder.pushes.some(({ type }) => type === 'lost'))
    await eventually('the next one', () => next.granted().length === 1)
    expect(holder.granted().map(({ id }) => id)).toEqual(['holder'])
  })

  it('a steal and an adoption let nobody in but the new holder', async () => {
    const holder = await holderThatWaited()
    const [thief, heir, next] = [client(), client(), client()]
    await next.claim(claimOf('next'))
    const stolen = await thief.claim(claimOf('thief', { mode: 'steal' }))
    expect(await holder.release('door', 'holder')).toBe(false)
    const adopts = { id: 'thief', fence: fenceIn(stolen) }
    const adopted = await heir.claim(claimOf('heir', { mode: 'adopt', adopts }))
    expect(adopted.status).toBe('granted')
    const [reply] = await next.pulse([{ resource: 'door', id: 'next', ...LASTING }])
    expect(reply?.status).toBe('waiting')
    await heir.release('door', 'heir')
    await eventually('the next one', () => next.granted().length === 1)
    expect(next.granted()[0]?.fence).toBeGreaterThan(fenceIn(adopted))
  })

  it('fences that the holder has reserved are below those of the next one', async () => {
    const holder = await holderThatWaited()
    const next = client()
    await next.claim(claimOf('next'))
    const [reply] = await holder.pulse([{ resource: 'door', id: 'holder', ...LASTING, block: 5 }])
    const block = reply?.status === 'held' ? (reply.block ?? Infinity) : Infinity
    await holder.release('door', 'holder')
    await eventually('the next one', () => next.granted().length === 1)
    expect(next.granted()[0]?.fence).toBeGreaterThan(block + 4)
  })

  it('a node that was replaced while a waiter was cut off does not let it in', async () => {
    const holder = await holderThatWaited()
    const proxy = await TcpProxy.start(server.port)
    proxies.push(proxy)
    const [next, last] = [client(), client(`127.0.0.1:${proxy.port}`)]
    await next.claim(claimOf('next'))
    await last.claim(claimOf('last'))
    proxy.mode = 'refuse'
    // So the next one replaces its node when it is granted, for a higher fence.
    await holder.pulse([{ resource: 'door', id: 'holder', ...LASTING, block: 5 }])
    await holder.release('door', 'holder')
    await eventually('the next one', () => next.granted().length === 1)
    proxy.mode = 'pass'
    const [reply] = await last.pulse([{ resource: 'door', id: 'last', ...LASTING }])
    expect(reply?.status).toBe('waiting')
    expect(last.granted()).toEqual([])
    await next.release('door', 'next')
    await eventually('the last one', () => last.granted().length === 1)
    expect(last.granted()[0]?.fence).toBeGreaterThan(next.granted()[0]?.fence ?? Infinity)
  })

  it('readers are let in together by the word of the writer, and a writer behind them is not', async () => {
    const holder = await holderThatWaited()
    const [one, other, writer] = [client(), client(), client()]
    await one.claim(claimOf('one', { permits: 1 }))
    await other.claim(claimOf('other', { permits: 1 }))
    await writer.claim(claimOf('writer'))
    await holder.release('door', 'holder')
    await eventually('both readers', () => one.granted().length + other.granted().length === 2)
    await one.release('door', 'one')
    const [reply] = await writer.pulse([{ resource: 'door', id: 'writer', ...LASTING }])
    expect(reply?.status).toBe('waiting')
    await other.release('door', 'other')
    await eventually('the writer', () => writer.granted().length === 1)
  })

  it('in a line that is shared with Curator, where a change asks for a hold, it is nobody’s word', async () => {
    const options = { root, shared: 'curator', tick: 200 } as const
    const waiting: Push[] = []
    const [holder, waiter] = [1, 2].map((number) => {
      const store = zookeeper(server.address, { ...options, sessionTimeout: MINUTE_MS + number })
      const connection = store.connect({ id: 'c', space: 's', push: (news) => void waiting.push(news) })
      opened.push(connection)
      return connection
    }) as [Connection, Connection]
    await holder.claim(claimOf('holder'))
    await waiter.claim(claimOf('waiter'))
    const { children } = await zk.getChildren(`${root}/door`)
    await zk.setData(`${root}/door/${children.toSorted(byNumber)[0]}`, '__REVOKE__')
    const [reply] = await waiter.pulse([{ resource: 'door', id: 'waiter', ...LASTING }])
    expect(reply?.status).toBe('waiting')
    expect(waiting).toEqual([])
  })

  it('whoever comes into a line that was left empty is noticed', async () => {
    const [one, other] = [client(), client()]
    for (let time = 0; time < 20; time++) {
      expect((await one.claim(claimOf(`one ${time}`))).status).toBe('granted')
      await one.release('door', `one ${time}`)
    }
    expect((await other.claim(claimOf('other'))).status).toBe('granted')
    expect((await one.claim(claimOf('again'))).status).toBe('waiting')
    await other.release('door', 'other')
    await eventually('the grant', () => one.granted().length === 1)
  })

  it('a capacity that was set in a line that was left empty is noticed', async () => {
    const [one, other] = [client(), client()]
    for (let time = 0; time < 20; time++) {
      await one.claim(claimOf(`one ${time}`, { permits: 1, capacity: 1 }))
      await one.release('door', `one ${time}`)
    }
    await other.resize('door', 1, 3)
    await other.claim(claimOf('other', { permits: 3, capacity: 1 }))
    expect((await one.claim(claimOf('again', { permits: 1, capacity: 1 }))).status).toBe('waiting')
  })

  it('a line that was removed and made anew is not taken for the one that was left empty', async () => {
    const [one, other] = [client(), client()]
    for (let time = 0; time < 6; time++) {
      await one.claim(claimOf(`one ${time}`))
      await one.release('door', `one ${time}`)
    }
    await zk.delete(`${root}/s/lines/door`)
    for (let time = 0; time < 6; time++) {
      expect((await other.claim(claimOf(`other ${time}`))).status).toBe('granted')
      if (time < 5) await other.release('door', `other ${time}`)
    }
    // It is given the very number that follows its last one.
    expect((await one.claim(claimOf('again'))).status).toBe('waiting')
    const { children } = await zk.getChildren(`${root}/s/lines/door`)
    expect(children.map((name) => Number(name.split(',').at(-1))).toSorted()).toEqual([5, 6])
  })
})
