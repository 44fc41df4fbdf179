import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { systemEnv } from '../../src/base/env.js'
import { EXCLUSIVE } from '../../src/contract/constants.js'
import type { ClaimReply, ClaimRequest, Connection, Push, StateOutcome } from '../../src/contract/store.js'
import {
  EtcdClient,
  EtcdError,
  type EtcdTransaction,
  type KeyEvent,
  type KeyWatch,
} from '../../src/drivers/etcd/index.js'
import { type EtcdStoreOptions, etcd } from '../../src/stores/etcd/index.js'
import { ownNames } from '../../src/stores/etcd/names.js'
import { EtcdSpace } from '../../src/stores/etcd/space.js'
import { eventually, inTime } from '../../src/testing/conformance/checks.js'
import { describeOn } from '../servers/availability.js'
import { type EtcdServer, startEtcd } from '../servers/etcd.js'
import { TcpProxy } from '../servers/proxy.js'

const MINUTE = 60_000
const PATIENT = { ttl: '60s', requestTimeout: '20s', stallTimeout: '20s' } as const
const endings: (() => unknown)[] = []

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end()
})

/** One client of the store, without the engine, and what is pushed to it. */
interface Client {
  readonly connection: Connection
  readonly pushes: Push[]
  claim(id: string, options?: Partial<ClaimRequest>): Promise<ClaimReply>
}

let clients = 0

function client(address: string, options: EtcdStoreOptions = {}): Client {
  const pushes: Push[] = []
  const store = etcd(address, { ...PATIENT, ...options })
  const push = (news: Push): void => {
    pushes.push(news)
  }
  const connection = store.connect({ id: `client-${++clients}`, space: 'default', push })
  endings.push(() => connection.close())
  const times = { leaseMs: MINUTE, presenceMs: MINUTE, maxHoldMs: null }
  const plain = {
    resource: 'door',
    permits: EXCLUSIVE,
    capacity: EXCLUSIVE,
    mode: 'queue',
    floor: 0,
  } as const
  return {
    connection,
    pushes,
    claim: async (id, wanted = {}) =>
      connection.claim({ id, ...times, ...plain, block: 1, info: '', ...wanted }),
  }
}

const has = ({ pushes }: Client, type: Push['type'], id: string): boolean =>
  pushes.some((push) => push.type === type && 'id' in push && push.id === id)

/** From now on it has a connection and a lease, and watches nothing. */
async function warmUp({ claim, connection }: Client): Promise<void> {
  await claim('warm', { resource: 'other' })
  await connection.release('other', 'warm')
}

/** The next claim is not answered, and reaches the servers when `deliver` is called. */
function loseNextClaim(): { deliver(address: string): Promise<boolean> } {
  const { transaction } = EtcdClient.prototype
  let lost: EtcdTransaction | undefined
  const spy = vi.spyOn(EtcdClient.prototype, 'transaction').mockImplementation(function (
    this: EtcdClient,
    request,
  ) {
    // Others do not compare anything.
    if (lost || !request.compare) return transaction.call(this, request)
    lost = request
    return Promise.reject(new EtcdError('UNAVAILABLE', 'No answer', { maybeDone: true }))
  })
  endings.push(() => spy.mockRestore())
  return {
    async deliver(address) {
      const network = new EtcdClient(address)
      endings.push(() => network.close())
      return (await network.transaction(lost ?? { success: [] })).succeeded
    },
  }
}

/** The answer to the next claim is kept back until `deliver` is called. `isHere`: it has come. */
function keepNextAnswer(): { deliver(): void; readonly isHere: Promise<void> } {
  const { transaction } = EtcdClient.prototype
  let [deliver, arrive] = [() => {}, () => {}]
  const delivered = new Promise<void>((resolve) => {
    deliver = resolve
  })
  const isHere = new Promise<void>((resolve) => {
    arrive = resolve
  })
  let isKept = false
  const spy = vi.spyOn(EtcdClient.prototype, 'transaction').mockImplementation(async function (
    this: EtcdClient,
    request,
  ) {
    const isNext = !isKept && request.compare !== undefined
    isKept ||= isNext
    const answer = await transaction.call(this, request)
    if (!isNext) return answer
    arrive()
    await delivered
    return answer
  })
  endings.push(() => spy.mockRestore())
  return { deliver, isHere }
}

/** The next claim is done, and not answered. */
function loseNextAnswer(): void {
  const { transaction } = EtcdClient.prototype
  const spy = vi.spyOn(EtcdClient.prototype, 'transaction').mockImplementation(async function (
    this: EtcdClient,
    request,
  ) {
    const answer = await transaction.call(this, request)
    if (!request.compare) return answer
    spy.mockRestore()
    throw new EtcdError('UNAVAILABLE', 'No answer', { maybeDone: true })
  })
  endings.push(() => spy.mockRestore())
}

/** What watches tell is kept back until `deliver` is called. */
function laggingWatches(): { readonly kept: readonly KeyEvent[]; deliver(): void } {
  const { watch } = EtcdClient.prototype
  const kept: KeyEvent[] = []
  const deliveries: (() => void)[] = []
  const spy = vi.spyOn(EtcdClient.prototype, 'watch').mockImplementation(function (this: EtcdClient, wanted) {
    const onEvents: KeyWatch['onEvents'] = (events) => {
      kept.push(...events)
      deliveries.push(() => wanted.onEvents(events))
    }
    return watch.call(this, { ...wanted, onEvents })
  })
  endings.push(() => spy.mockRestore())
  return {
    kept,
    deliver() {
      for (const delivery of deliveries.splice(0)) delivery()
    },
  }
}

/** Makes the garbage collection of V8 callable, and runs it. */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
}

/** Returns what lets no watch tell of anything any more. */
function silenceableWatches(): () => void {
  const { watch } = EtcdClient.prototype
  let isSilent = false
  const spy = vi.spyOn(EtcdClient.prototype, 'watch').mockImplementation(function (this: EtcdClient, wanted) {
    const onEvents: KeyWatch['onEvents'] = (events) => isSilent || wanted.onEvents(events)
    return watch.call(this, { ...wanted, onEvents })
  })
  endings.push(() => spy.mockRestore())
  return () => {
    isSilent = true
  }
}

describeOn('etcd', 'a claim whose request is carried out late', () => {
  it.each(['queue', 'try', 'steal'] as const)(
    'is refused, as its client has asked again: %s',
    async (mode) => {
      const server = await startEtcd()
      endings.push(() => server.stop())
      const ours = client(server.address)
      await warmUp(ours)
      const network = loseNextClaim()
      await expect(ours.claim('late', { mode })).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
        retryable: true,
      })
      expect(await ours.claim('late', { mode })).toMatchObject({ status: 'granted' })
      // Otherwise the line itself would refuse some of them.
      expect(await ours.connection.release('door', 'late')).toBe(true)
      expect(await network.deliver(server.address)).toBe(false)
      expect(await server.ctl('get', '--prefix', '--keys-only', 'holdfast/default/lines/door/')).toBe('')
    },
  )
})

describeOn('etcd', 'lines of etcd that others change at the same time', () => {
  let server: EtcdServer
  let proxy: TcpProxy

  beforeEach(async () => {
    server = await startEtcd()
    endings.push(() => server.stop())
    proxy = await TcpProxy.start(server.port)
    endings.push(() => proxy.stop())
  })
  const remote = (options?: EtcdStoreOptions): Client => client(`127.0.0.1:${proxy.port}`, options)
  const near = (options?: EtcdStoreOptions): Client => client(server.address, options)

  /** What a client has looked at is on its way back. Shorter answers are those to pings. */
  const looked = (down: number): Promise<void> => eventually('the look', () => proxy.bytes.down > down + 60)

  async function holders(): Promise<string[]> {
    for await (const { claims } of near().connection.inspect({ prefix: '', resource: 'door' }))
      return claims.filter(({ fence }) => fence !== null).map(({ id }) => id)
    return []
  }

  it('a steal also takes what was granted after the thief looked', async () => {
    const [thief, reader] = [remote(), near()]
    await warmUp(thief)
    expect(await reader.claim('one', { permits: 1 })).toMatchObject({ status: 'granted' })
    proxy.delayMs = 500
    const { down } = proxy.bytes
    const stealing = thief.claim('thief', { mode: 'steal' })
    await looked(down)
    expect(await reader.claim('two', { permits: 1 })).toMatchObject({ status: 'granted' })
    expect(await stealing).toMatchObject({ status: 'granted' })
    await reader.connection.pulse([])
    await eventually('the loss of the first', () => has(reader, 'lost', 'one'))
    await eventually('the loss of the second', () => has(reader, 'lost', 'two'))
  })

  it('a steal also takes a free lock that was taken after the thief looked', async () => {
    const [thief, other] = [remote(), near()]
    await warmUp(thief)
    proxy.delayMs = 500
    const { down } = proxy.bytes
    const stealing = thief.claim('thief', { mode: 'steal' })
    await looked(down)
    expect(await other.claim('one')).toMatchObject({ status: 'granted' })
    expect(await stealing).toMatchObject({ status: 'granted' })
    await eventually('the loss', () => has(other, 'lost', 'one'))
  })

  it('a capacity that shrank is known before the next one is let in', async () => {
    const [ours, other] = [remote(), near()]
    const one = { permits: 1, capacity: 2 }
    expect(await other.claim('theirs', one)).toMatchObject({ status: 'granted' })
    expect(await ours.claim('held', one)).toMatchObject({ status: 'granted' })
    expect(await ours.claim('waits', one)).toMatchObject({ status: 'waiting' })
    proxy.mode = 'refuse'
    await other.connection.resize('door', 2, 1)
    const released = ours.connection.release('door', 'held')
    // The release is answered before the watch tells of the new capacity.
    proxy.mode = 'pass'
    expect(await released).toBe(true)
    await eventually('our own key gone', async () => {
      const text = await server.ctl('get', '--prefix', '--keys-only', 'holdfast/default/lines/door/')
      return text.split('\n').filter((line) => line !== '').length === 2
    })
    await ours.connection.pulse([{ resource: 'door', id: 'waits', leaseMs: MINUTE, presenceMs: MINUTE }])
    expect(has(ours, 'granted', 'waits')).toBe(false)
    await other.connection.release('door', 'theirs')
    await eventually('the grant', () => has(ours, 'granted', 'waits'))
  })

  it('a capacity that shrinks lets nobody in who came together with a holder', async () => {
    const [ours, other] = [near(), near()]
    const ids = ['a', 'b', 'c', 'd']
    // The first one goes alone, and the others in one transaction.
    const replies = await Promise.all(ids.map((id) => ours.claim(id, { permits: 1, capacity: 2 })))
    expect(replies.map(({ status }) => status)).toEqual(['granted', 'granted', 'waiting', 'waiting'])
    await other.connection.resize('door', 2, 1)
    const beats = ids.map((id) => ({ resource: 'door', id, leaseMs: MINUTE, presenceMs: MINUTE }))
    const states = await ours.connection.pulse(beats)
    expect(states.map(({ status }) => status)).toEqual(['held', 'held', 'waiting', 'waiting'])
    expect(has(ours, 'granted', 'c')).toBe(false)
    expect(await holders()).toEqual(['a', 'b'])
    for (const id of ['a', 'b']) await ours.connection.release('door', id)
    await eventually('the grant', () => has(ours, 'granted', 'c'))
    expect(await holders()).toEqual(['c'])
  })

  it('a claim that needs a later fence asks for it again when the answer was lost', async () => {
    const [ours, other] = [remote({ requestTimeout: '2s', stallTimeout: '2s' }), near()]
    await ours.connection.read('news', true)
    await other.claim('first')
    await ours.claim('waits')
    // From now on the fence of ours is too low.
    await other.claim('thief', { mode: 'steal' })
    proxy.delayMs = 500
    const { up } = proxy.bytes
    await other.connection.release('door', 'thief')
    // Longer than the answers to some pings of the server.
    await eventually('the request', () => proxy.bytes.up > up + 200)
    proxy.mode = 'lose replies'
    const { down } = proxy.bytes
    await eventually('the request at the server', async () =>
      (await server.ctl('get', '--prefix', 'holdfast/default/lines/door/')).includes('isLate'),
    )
    await eventually('a lost answer', () => proxy.bytes.down > down)
    proxy.delayMs = 0
    proxy.mode = 'pass'
    // The watches tell what has happened, so the line has no further news for the pulse.
    await other.connection.write({ key: 'news', expect: null, value: '', retentionMs: null })
    await eventually('the news', () => ours.pushes.some(({ type }) => type === 'state'))
    await eventually('the grant', async () => {
      await ours.connection
        .pulse([{ resource: 'door', id: 'waits', leaseMs: MINUTE, presenceMs: MINUTE }])
        .catch(() => {})
      return has(ours, 'granted', 'waits')
    })
  })

  it('a claim that could not be withdrawn is withdrawn later, by itself', async () => {
    const [ours, other] = [remote({ requestTimeout: '1s', stallTimeout: '1s' }), near()]
    await other.claim('first')
    await ours.claim('waits')
    proxy.mode = 'refuse'
    await expect(Promise.resolve(ours.connection.release('door', 'waits'))).rejects.toThrow()
    proxy.mode = 'pass'
    await other.claim('last')
    await other.connection.release('door', 'first')
    await eventually('the grant', () => has(other, 'granted', 'last'))
  })

  it('a release touches only the own claim, not the thief that has its key', async () => {
    const [robbed, thief] = [remote(), near()]
    await robbed.claim('robbed')
    proxy.mode = 'refuse'
    expect(await thief.claim('thief', { mode: 'steal' })).toMatchObject({ status: 'granted' })
    const released = robbed.connection.release('door', 'robbed')
    proxy.mode = 'pass'
    expect(await released).toBe(false)
    expect(await holders()).toEqual(['thief'])
  })

  it('a claim does not take the key that a thief has, though it would use that key again', async () => {
    const [robbed, thief] = [near(), near()]
    await robbed.claim('robbed')
    expect(await thief.claim('thief', { mode: 'steal' })).toMatchObject({ status: 'granted' })
    await robbed.connection.pulse([])
    await eventually('the loss', () => has(robbed, 'lost', 'robbed'))
    expect(await robbed.claim('tries', { mode: 'try' })).toMatchObject({ status: 'refused' })
    expect(await robbed.claim('again')).toMatchObject({ status: 'waiting' })
    expect(await holders()).toEqual(['thief'])
    await thief.connection.release('door', 'thief')
    await eventually('the grant', () => has(robbed, 'granted', 'again'))
  })

  it('a claim that is broken before its answer has come does not hold', async () => {
    const [ours, other] = [near(), near()]
    await other.claim('first')
    await ours.claim('waits')
    await other.connection.release('door', 'first')
    await eventually('the grant', () => has(ours, 'granted', 'waits'))
    // What it watches comes in one stream: after this, the watch has told of all that was before.
    await ours.connection.read('news', true)
    const answer = keepNextAnswer()
    const claimed = ours.claim('late')
    claimed.catch(() => {})
    await answer.isHere
    await ours.connection.release('door', 'waits')
    expect(await other.connection.evict('door', null)).toMatchObject([{ id: 'late' }])
    await other.connection.write({ key: 'news', expect: null, value: '', retentionMs: null })
    await eventually('the news', () => ours.pushes.some(({ type }) => type === 'state'))
    answer.deliver()
    await expect(claimed).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
    expect(await other.claim('next')).toMatchObject({ status: 'granted' })
    expect(await ours.claim('late')).toMatchObject({ status: 'waiting' })
  })

  it('keeps nothing of the claims that have left a line in which another one stays', async () => {
    const ours = near()
    // Long enough that the keys would show.
    const shared = { resource: 'x'.repeat(50_000), permits: 1 }
    await ours.claim('stays', shared)
    const cycle = async (count: number): Promise<number> => {
      for (let number = 0; number < count; number++) {
        await ours.claim('goes', shared)
        await ours.connection.release(shared.resource, 'goes')
      }
      collectGarbage()
      return process.memoryUsage().heapUsed
    }
    const before = await cycle(50)
    expect((await cycle(300)) - before).toBeLessThan(5e6)
  })

  it.each(['claim', 'release'])(
    'a claim and a release that leave together are both known: %s first',
    async (order) => {
      const ours = near()
      await ours.claim('first')
      const claim = (): Promise<ClaimReply> => ours.claim('next')
      const release = async (): Promise<boolean> => ours.connection.release('door', 'first')
      const calls = order === 'claim' ? [claim(), release()] : [release(), claim()]
      const [reply] = (await Promise.all(calls)).filter((one) => typeof one === 'object')
      if (reply?.status !== 'granted') await eventually('the grant', () => has(ours, 'granted', 'next'))
    },
  )

  it('a claim that was refused and has left counts as nobody who waits', async () => {
    const holder = client(server.address)
    await holder.claim('first')
    const refused = await holder.claim('other', { permits: 1, capacity: 1 })
    expect(refused).toMatchObject({ status: 'refused', reason: 'capacity' })
    expect(await holder.claim('first')).not.toMatchObject({ isWanted: true })
  })

  it('a lock that is taken again and again has the same key each time, and a greater fence', async () => {
    const ours = near()
    const seen: { key: string; fence: number }[] = []
    for (const id of ['one', 'two', 'three']) {
      const granted = await ours.claim(id)
      const [key = ''] = (
        await server.ctl('get', '--prefix', '--keys-only', 'holdfast/default/lines/')
      ).split('\n')
      seen.push({ key, fence: granted.status === 'granted' ? granted.fence : 0 })
      await ours.connection.release('door', id)
    }
    expect(new Set(seen.map(({ key }) => key)).size).toBe(1)
    expect(seen.map(({ fence }) => fence)).toEqual(seen.map(({ fence }) => fence).toSorted((a, b) => a - b))
    expect(new Set(seen.map(({ fence }) => fence)).size).toBe(3)
  })

  it('a break touches only the hold with that fence, not the thief that has its key', async () => {
    const [operator, holder, thief] = [remote(), near(), near()]
    const granted = await holder.claim('robbed')
    await warmUp(thief)
    await warmUp(operator)
    proxy.delayMs = 500
    const { down } = proxy.bytes
    const fence = granted.status === 'granted' ? granted.fence : 0
    const breaking = operator.connection.evict('door', fence)
    await looked(down)
    expect(await thief.claim('thief', { mode: 'steal' })).toMatchObject({ status: 'granted' })
    expect(await breaking).toEqual([])
    expect(await holders()).toEqual(['thief'])
  })

  const beats = [
    { what: 'a downgrade', beat: { permits: 1 } },
    { what: 'a block of fences', beat: { block: 1024 } },
  ]
  it.each(beats)('$what of a hold that is stolen meanwhile is not given', async ({ beat }) => {
    const silence = silenceableWatches()
    const [robbed, thief] = [remote(), near()]
    await robbed.claim('robbed')
    // So the line is watched from now on, and not in the middle of what is counted.
    await robbed.claim('waits')
    await warmUp(thief)
    const plain = { resource: 'door', id: 'robbed', leaseMs: MINUTE, presenceMs: MINUTE }
    await robbed.connection.pulse([plain])
    const before = proxy.bytes.up
    await robbed.connection.pulse([plain])
    const pulseBytes = proxy.bytes.up - before
    proxy.delayMs = 500
    const { up } = proxy.bytes
    const pulsed = robbed.connection.pulse([{ ...plain, ...beat }])
    // The renewal and the look at the line, and then the change, which is held back.
    await eventually('the change', () => proxy.bytes.up > up + pulseBytes + 100)
    // Otherwise a watch would tell of the theft before the answer to the change.
    silence()
    expect(await thief.claim('thief', { mode: 'steal' })).toMatchObject({ status: 'granted' })
    expect(await pulsed).toEqual([{ status: 'gone' }])
    expect(await holders()).toEqual(['thief'])
  })

  it('a hold is valid no longer than the lease of its client', async () => {
    const ours = near({ ttl: '10s' })
    const granted = await ours.claim('held')
    const [held] = await ours.connection.pulse([
      { resource: 'door', id: 'held', leaseMs: MINUTE, presenceMs: MINUTE },
    ])
    const waiting = await ours.claim('waits')
    for (const reply of [granted, held]) {
      const leaseMs = reply && 'leaseMs' in reply ? reply.leaseMs : Infinity
      // Counted from the call, which was a little before the lease was asked for.
      expect(leaseMs).toBeLessThan(15_000)
    }
    expect(waiting.status === 'waiting' && waiting.presenceMs).toBeLessThan(15_000)
  })

  it('a key of other software excludes everybody, in its turn', async () => {
    const ours = near()
    await server.ctl('put', 'holdfast/default/lines/door/abc', '')
    expect(await ours.claim('tries', { permits: 1, mode: 'try' })).toMatchObject({ status: 'refused' })
    expect(await ours.claim('waits', { permits: 1 })).toMatchObject({ status: 'waiting' })
    await server.ctl('del', 'holdfast/default/lines/door/abc')
    await eventually('the grant', () => has(ours, 'granted', 'waits'))
    await ours.connection.close()
    // What a client has ends with it.
    expect(await server.ctl('get', '--prefix', '--keys-only', 'holdfast/')).toBe('')
  })

  it.each(['queue', 'try', 'steal'] as const)('a claim (%s) whose answer was lost is found', async (mode) => {
    const ours = remote({ requestTimeout: '1s', stallTimeout: '1s' })
    await warmUp(ours)
    proxy.mode = 'lose replies'
    await expect(ours.claim('lost', { mode })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    proxy.mode = 'pass'
    // As the engine does; the first may still meet the end of the connection.
    const again = (): Promise<ClaimReply> => ours.claim('lost', { mode })
    const found = await inTime('its answer', again().catch(again))
    expect(found).toMatchObject({ status: 'granted' })
    expect(await holders()).toEqual(['lost'])
  })

  it('a waiter hears of its turn although the history was compacted, without asking', async () => {
    const [ours, other] = [remote(), near()]
    await other.claim('first')
    await ours.claim('waits')
    proxy.mode = 'refuse'
    await other.connection.release('door', 'first')
    for (const value of ['1', '2', '3']) await server.ctl('put', 'other', value)
    await server.compact()
    proxy.mode = 'pass'
    await eventually('the grant', () => has(ours, 'granted', 'waits'))
  })

  it('every waiter hears of its turn after a new connection, without asking', async () => {
    const [ours, other] = [remote(), near()]
    const doors = ['one', 'two', 'three']
    for (const resource of doors) await other.claim(`held ${resource}`, { resource })
    for (const resource of doors) await ours.claim(`waits ${resource}`, { resource })
    proxy.cut()
    for (const resource of doors) await other.connection.release(resource, `held ${resource}`)
    await eventually('the grants', () => doors.every((door) => has(ours, 'granted', `waits ${door}`)))
  })

  it.each(['a watch', 'a renewal'])('every claim hears of the end of the lease by %s', async (by) => {
    const silence = silenceableWatches()
    const ours = near({ ttl: '2s' })
    await ours.claim('held')
    await ours.claim('waits')
    if (by === 'a renewal') silence()
    const key = (await server.ctl('get', '--prefix', '--keys-only', 'holdfast/default/clients/')).trim()
    await server.ctl('lease', 'revoke', key.slice(key.lastIndexOf('/') + 1))
    await eventually('the losses', () => ['held', 'waits'].every((id) => has(ours, 'lost', id)))
    // The first may still meet the old lease.
    const next = (): Promise<ClaimReply> => ours.claim('next')
    expect(await next().catch(next)).toMatchObject({ status: 'granted' })
  })

  it('a claim that was found again outlives what the watch tells of the time before it', async () => {
    const watches = laggingWatches()
    const [ours, other] = [near(), near()]
    const two = { permits: 2, capacity: 2 }
    expect(await other.claim('robbed', two)).toMatchObject({ status: 'granted' })
    expect(await ours.claim('waits', two)).toMatchObject({ status: 'waiting' })
    // Its key changes, and is stolen then.
    const beat = { resource: 'door', id: 'robbed', leaseMs: MINUTE, presenceMs: MINUTE, permits: 1 }
    expect(await other.connection.pulse([beat])).toMatchObject([{ status: 'held' }])
    loseNextAnswer()
    const steal = (): Promise<ClaimReply> => ours.claim('thief', { ...two, mode: 'steal' })
    await expect(steal()).rejects.toMatchObject({ retryable: true })
    expect(await steal()).toMatchObject({ status: 'granted' })
    await eventually('the news of the theft', () =>
      watches.kept.some(({ kv }) => String(kv.value).includes('thief')),
    )
    watches.deliver()
    expect(has(ours, 'lost', 'thief')).toBe(false)
    expect(await holders()).toEqual(['thief'])
    expect(await ours.connection.release('door', 'thief')).toBe(true)
    await eventually('the grant', () => {
      watches.deliver()
      return has(ours, 'granted', 'waits')
    })
  })

  it('says what it cannot do with many holds, and takes them one by one', async () => {
    const ours = near()
    const one = { permits: 1, capacity: 150 }
    const ids = Array.from({ length: 150 }, (_, index) => `held ${index}`)
    const holds = await Promise.all(ids.map((id) => ours.claim(id, one)))
    expect(holds.every(({ status }) => status === 'granted')).toBe(true)
    await ours.claim('waits', one)
    const refusal = { code: 'UNSUPPORTED', message: expect.stringContaining('150') }
    await expect(ours.claim('thief', { ...one, mode: 'steal' })).rejects.toMatchObject(refusal)
    await expect(ours.connection.cancel('door', 'waits')).rejects.toMatchObject(refusal)
    expect(await ours.connection.evict('door', null)).toHaveLength(150)
    await eventually('the grant', () => has(ours, 'granted', 'waits'))
  })

  it('a state has one lease, however often it is written, and none where it is kept for ever', async () => {
    const { connection } = near()
    const key = 'count'
    const write = async (expect: number | null, value: string): Promise<StateOutcome> =>
      connection.write({ key, expect, value, retentionMs: MINUTE })
    let version: number | null = null
    for (let count = 1; count <= 20; count++)
      version = (await write(version, String(count))).current?.version ?? null
    for (let count = 1; count <= 5; count++)
      expect(await write(1, 'wrong')).toMatchObject({ written: false, current: { value: '20' } })
    const leases = (count: number): Promise<void> =>
      eventually(`${count} leases`, async () =>
        (await server.ctl('lease', 'list')).startsWith(`found ${count} `),
      )
    await leases(1)
    expect(await server.ctl('get', `holdfast/default/states/${key}`)).toContain('=20')
    await connection.write({ key, expect: version, value: 'kept', retentionMs: null })
    await leases(0)
    expect(await connection.read(key, false)).toMatchObject({ value: 'kept' })
  })

  it('a call that waits for a line ends when nobody needs the line any more', async () => {
    const made = new EtcdClient(server.address)
    endings.push(() => made.close())
    const settings = { client: made, env: systemEnv, names: ownNames('holdfast/', 'default'), ttlMs: MINUTE }
    const line = new EtcdSpace({ ...settings, push: () => {}, onLeaseEnd: () => {} }).line('door')
    line.enter()
    await line.read()
    const reached = line.reached(line.revision + 1000)
    expect(line.isWatched).toBe(true)
    // As when the lease ends, and every claim with it.
    line.leave()
    await reached
  })

  it('says nothing of waiters that may have left since it was read', async () => {
    laggingWatches()
    const [ours, theirs] = [near(), near()]
    expect(await ours.claim('hold', { permits: 1 })).toMatchObject({ status: 'granted' })
    expect(await theirs.claim('waiter')).toMatchObject({ status: 'waiting' })
    const beat = { resource: 'door', id: 'hold', leaseMs: MINUTE, presenceMs: MINUTE }
    expect(await ours.connection.pulse([beat])).toMatchObject([{ isWanted: true }])
    expect(await theirs.connection.release('door', 'waiter')).toBe(true)
    expect(await ours.claim('hold', { permits: 1 })).not.toHaveProperty('isWanted')
  })
})
