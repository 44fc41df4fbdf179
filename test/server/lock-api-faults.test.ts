import { describe, expect, it, onTestFinished } from 'vitest'
import { Holdfast, HoldfastError } from '../../src/index.js'
import { dashboard } from '../../src/server/index.js'
import { memory } from '../../src/stores/memory/index.js'
import { InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'
import { TOKEN } from './dashboards.js'
import { LockClient } from './lock-api-cases.js'

/** A server whose way to its store a test disturbs, and one whose way is whole. */
function servers(): { store: InterceptedStore; disturbed: LockClient; whole: LockClient } {
  const inner = memory()
  // A store that answers within the call loses no reply.
  const store = new InterceptedStore({
    name: inner.name,
    capabilities: { ...inner.capabilities, answersAtOnce: false },
    connect: (client) => inner.connect(client),
  })
  const [disturbed, whole] = [store, inner].map((each) => {
    const locks = new Holdfast(each)
    const view = dashboard(locks, { token: TOKEN, allowLocks: true })
    onTestFinished(async () => {
      await view.close()
      await locks.close({ drain: 0 })
    })
    return new LockClient(view)
  })
  return { store, disturbed: disturbed as LockClient, whole: whole as LockClient }
}

/** The store carries out the next call of that method, and its reply is lost. Counts these. */
function loseReply(store: InterceptedStore, method: 'claim' | 'pulse' | 'release'): () => number {
  let lost = 0
  store.around = async (call, go) => {
    const reply = await go()
    if (call.method !== method) return reply
    store.heal()
    lost++
    throw new HoldfastError('STORE_UNAVAILABLE', 'The connection was lost', { retryable: true })
  }
  return () => lost
}

describe('the lock API, where the reply of the store is lost', () => {
  it('grants once', async () => {
    const { store, disturbed, whole } = servers()
    loseReply(store, 'claim')
    const { status, body } = await disturbed.acquire('a')
    expect(status).toBe(201)
    expect((await whole.line('a')).body.holders).toMatchObject([{ fence: body.fence }])
    expect(await whole.release('a', body.token)).toBe(204)
    expect((await whole.line('a')).status).toBe(404)
  })

  it('hands a hold over that had to wait', async () => {
    const { store, disturbed, whole } = servers()
    const first = await whole.acquire('a')
    const waiting = disturbed.acquire('a', { wait: '50s', lease: '2m' })
    await expect.poll(async () => (await whole.line('a')).body.waitersTotal).toBe(1)
    const lost = loseReply(store, 'pulse')
    expect(await whole.release('a', first.body.token)).toBe(204)
    const { status, body } = await waiting
    expect(status).toBe(201)
    expect(lost()).toBe(1)
    expect((await whole.line('a')).body.holders).toMatchObject([{ fence: body.fence }])
    expect((await whole.renew('a', body.token)).body.fence).toBe(body.fence)
    expect(await whole.release('a', body.token)).toBe(204)
  })

  it('renews, and says how long it lasts', async () => {
    const { store, disturbed } = servers()
    const { body } = await disturbed.acquire('a', { lease: '20s' })
    loseReply(store, 'pulse')
    const renewed = await disturbed.renew('a', body.token, { lease: '1m' })
    expect(renewed).toMatchObject({ status: 200, body: { fence: body.fence } })
    expect(renewed.body.leaseMs).toBeGreaterThan(40_000)
  })

  it('releases once, and says that it did', async () => {
    const { store, disturbed, whole } = servers()
    const { body } = await disturbed.acquire('a')
    loseReply(store, 'release')
    expect(await disturbed.release('a', body.token)).toBe(204)
    expect(await whole.release('a', body.token)).toBe(410)
  })
})

it('the lock API hands out no hold that lapsed before the store answered', async () => {
  const { store, disturbed, whole } = servers()
  // The server stands still for longer than the lease: meanwhile another client has taken the lock.
  let taken: number | undefined
  store.around = async (call, go) => {
    const reply = await go()
    if (call.method !== 'claim') return reply
    store.heal()
    taken = (await whole.acquire('a', { wait: '20s', lease: '20s' })).body.fence
    return reply
  }
  const { status, body } = await disturbed.acquire('a', { wait: '1s', lease: '1s' })
  expect(status).toBe(409)
  expect(body.code).toBe('ACQUIRE_TIMEOUT')
  expect((await whole.line('a')).body.holders).toMatchObject([{ fence: taken }])
})
