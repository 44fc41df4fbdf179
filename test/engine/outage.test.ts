import { describe, expect, it } from 'vitest'
import { HoldfastError } from '../../src/base/errors.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

const STORE_TIMEOUT_MS = 10_000
/** Timers count in whole milliseconds, and fire up to two late. */
const TIMER_MS = 3

function scene(seed: number) {
  const world = new VirtualWorld({ seed })
  const inner = memory({ env: world.env({ name: 'server' }) })
  const store = new InterceptedStore(inner)
  const locks = new Holdfast(store, { env: world.env({ name: 'client' }) })
  const others = new Holdfast(inner, { env: world.env({ name: 'others' }) })
  /** What it was rejected with, and how long that took. */
  const failure = async (call: Promise<unknown>) => {
    const startedAt = world.timeMs
    const error = await world.until(
      call.then(
        () => null,
        (reason: HoldfastError) => reason,
      ),
    )
    return { error, ms: world.timeMs - startedAt }
  }
  return { world, store, locks, others, failure }
}

const OUTAGES = { silent: 'hang', refusing: 'cut' } as const

for (const [outage, fault] of Object.entries(OUTAGES))
  it(`tells of a ${outage} store within storeTimeout, whatever was asked`, async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const { store, locks, failure } = scene(seed)
      store[fault]()
      const calls = [
        () => locks.mutex('door').acquire(),
        () => locks.mutex('door').tryAcquire(),
        () => locks.all(['a', 'b']).acquire(),
        () => locks.latch('ready', 1).wait(),
        () => locks.latch('ready', 1).countDown(),
        () => locks.barrier('phase', 2).meet(),
      ]
      for (const call of calls) {
        const { error, ms } = await failure(call())
        expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
        expect(ms).toBeLessThanOrEqual(STORE_TIMEOUT_MS + TIMER_MS)
        expect(error?.message).not.toMatch(/longer lease|[^0-9]\d+ ms/)
      }
    }
  })

it('gives the reason of the attempt before, where the deadline cuts the last one short', async () => {
  for (let seed = 1; seed <= 20; seed++) {
    const { world, store, locks, failure } = scene(seed)
    const calls = [
      () => locks.mutex('door').acquire(),
      () => locks.mutex('door').tryAcquire(),
      () => locks.latch('ready', 1).wait(),
      () => locks.latch('ready', 1).countDown(),
      () => locks.mutex('door').isLocked(),
    ]
    for (const call of calls) {
      const startedAt = world.timeMs
      store.around = async () => {
        // Pauses between attempts are at most 500 ms, so that at least one begins after this.
        if (world.timeMs - startedAt > STORE_TIMEOUT_MS - 800) return new Promise<never>(() => {})
        throw new HoldfastError('STORE_UNAVAILABLE', 'connection refused', { retryable: true })
      }
      const { error } = await failure(call())
      expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', message: 'connection refused' })
    }
  }
})

it('tells a waiter within storeTimeout after the first request that went unanswered', async () => {
  for (let seed = 1; seed <= 20; seed++) {
    const { world, store, locks, others, failure } = scene(seed)
    await world.until(others.mutex('door').acquire({ lease: '1h' }))
    const waiter = locks.mutex('door').acquire({ lease: '3s' })
    waiter.catch(() => {})
    await world.run(world.timeMs + 10)
    store.hang()
    await world.until(
      new Promise<void>((resolve) => {
        const around = store.around
        store.around = (call, go) => {
          resolve()
          return around(call, go)
        }
      }),
    )
    const { error, ms } = await failure(waiter)
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(error?.message).toMatch(/did not answer within 10 s; .*raise storeTimeout/)
    expect(ms).toBeLessThanOrEqual(STORE_TIMEOUT_MS + TIMER_MS)
  }
})

it('closes within storeTimeout and a moment, although neither releases nor the end of the connection are answered', async () => {
  const { world, store, locks } = scene(1)
  const connect = store.connect.bind(store)
  const closing = new InterceptedStore({
    ...store,
    name: store.name,
    capabilities: store.capabilities,
    connect: (client) => ({ ...connect(client), close: () => new Promise<never>(() => {}) }),
  })
  const stuck = new Holdfast(closing, { env: world.env({ name: 'stuck' }) })
  await world.until(stuck.mutex('door').acquire({ lease: '1h' }))
  store.hang()
  const startedAt = world.timeMs
  await world.until(stuck.close({ drain: 0 }).catch(() => {}))
  expect(world.timeMs - startedAt).toBeLessThanOrEqual(STORE_TIMEOUT_MS + 1500 + TIMER_MS)
  store.heal()
  await world.until(locks.close())
})

it('blames the lease only where the store answers', async () => {
  const { world, store, locks, failure } = scene(1)
  store.around = async (_call, go) => {
    const reply = await go()
    await new Promise<void>((resolve) => void world.after(200, resolve))
    return reply
  }
  const { error } = await failure(locks.mutex('door').tryAcquire({ lease: 100 }))
  expect(error?.message).toMatch(/ask for a longer lease/)
})

it('gives a request that a short wait has sent the time of a healthy store to be answered', async () => {
  const { world, store, locks, others, failure } = scene(1)
  await world.until(others.mutex('door').acquire({ lease: '1h' }))
  store.around = async (_call, go) => {
    await new Promise<void>((resolve) => void world.after(600, resolve))
    const reply = await go()
    await new Promise<void>((resolve) => void world.after(600, resolve))
    return reply
  }
  const taken = await failure(locks.mutex('door').acquire({ wait: 20 }))
  expect(taken.error).toMatchObject({ code: 'ACQUIRE_TIMEOUT' })
  // Then a quarter of a second for the look at who holds it, which takes too long here.
  expect(taken.ms).toBe(1450)
  await world.until(locks.mutex('gate').acquire({ wait: 20 }))
})

const ROLLBACK_MS = 2000

describe('does not wait long for a silent store to undo what it gave', () => {
  it('for some of several locks, when their caller gives up', async () => {
    const { world, store, locks, others, failure } = scene(1)
    await world.until(others.mutex('b').acquire({ lease: '1h' }))
    const controller = new AbortController()
    const asking = locks.all(['a', 'b']).acquire({ signal: controller.signal })
    asking.catch(() => {})
    await world.run(world.timeMs + 100)
    store.hang()
    controller.abort()
    const { error, ms } = await failure(asking)
    expect(error).toMatchObject({ code: 'ABORTED' })
    expect(ms).toBeLessThan(ROLLBACK_MS)
  })

  it('for an arrival at a barrier, when its party gives up', async () => {
    const { world, store, locks, failure } = scene(1)
    const controller = new AbortController()
    const meeting = locks.barrier('phase', 2).meet({ signal: controller.signal })
    meeting.catch(() => {})
    await world.run(world.timeMs + 100)
    // Only the state says whether the others have met with it: that answer is worth its time.
    store.hang('release')
    controller.abort()
    const { error, ms } = await failure(meeting)
    expect(error).toMatchObject({ code: 'ABORTED' })
    expect(ms).toBeLessThan(ROLLBACK_MS)
  })

  it('for a party that has met the others', async () => {
    const { world, store, locks, others } = scene(1)
    const meeting = locks.barrier('phase', 2).meet()
    await world.run(world.timeMs + 100)
    store.hang('release')
    await world.until(others.barrier('phase', 2).meet())
    await world.until(meeting, ROLLBACK_MS)
  })

  for (const [what, call] of Object.entries({
    'a tick whose start could not be recorded': (locks: Holdfast) =>
      locks.once('tick', { atLeast: '1m', atMost: '1h' }, () => {}),
    'a leader that could not be announced': (locks: Holdfast) => locks.election('leader').campaign(),
  }))
    it(`for ${what}`, async () => {
      const { store, locks, failure } = scene(1)
      store.hang('read', 'write', 'release')
      const { error, ms } = await failure(call(locks))
      expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
      expect(ms).toBeLessThan(STORE_TIMEOUT_MS + ROLLBACK_MS)
    })
})
