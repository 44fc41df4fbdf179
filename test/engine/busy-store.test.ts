import { expect, it } from 'vitest'
import type { ClaimReply, ClaimRequest, Store } from '../../src/contract/store.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

const STORE_TIMEOUT_MS = 10_000
const CLAIM_MS = 100

/**
 * A store that takes its time for each claim, and does one after the other. After `dies` claims it
 * is silent.
 */
function oneByOne(world: VirtualWorld, dies = Infinity) {
  const env = world.env({ name: 'server' })
  const store = memory({ env })
  const told = { lastAt: 0 }
  let last: Promise<unknown> = Promise.resolve()
  let served = 0
  const busy: Store = {
    ...store,
    name: store.name,
    capabilities: store.capabilities,
    connect(client) {
      const connection = store.connect(client)
      const claim = connection.claim.bind(connection)
      const serve = async (request: ClaimRequest): Promise<ClaimReply> => {
        await new Promise<void>((resolve) => env.timer(CLAIM_MS, resolve, { keepAlive: true }))
        if (served++ >= dies) return new Promise(() => {})
        told.lastAt = world.timeMs
        return claim(request)
      }
      connection.claim = (request) => {
        const turn = last.then(() => serve(request))
        last = turn
        return turn
      }
      return connection
    },
  }
  return { busy, told }
}

it('waits for a store that is busy, and answers one after the other, longer than for one that is silent', async () => {
  const world = new VirtualWorld({ seed: 1 })
  const { busy } = oneByOne(world)
  const locks = new Holdfast(busy, { env: world.env({ name: 'client' }), storeTimeout: STORE_TIMEOUT_MS })
  const count = (2 * STORE_TIMEOUT_MS) / CLAIM_MS
  const asked = Array.from({ length: count }, (_, n) => locks.mutex(`held ${n}`).acquire())
  const outcomes = await world.until(Promise.allSettled(asked))
  expect(outcomes.filter(({ status }) => status === 'rejected')).toEqual([])
  await world.until(locks.close())
})

it('tells of a store that falls silent under a crowd within the time-out', async () => {
  const world = new VirtualWorld({ seed: 2 })
  const { busy, told } = oneByOne(world, 60)
  const locks = new Holdfast(busy, { env: world.env({ name: 'client' }), storeTimeout: STORE_TIMEOUT_MS })
  let lastFailureAt = 0
  const asked = Array.from({ length: 200 }, (_, n) =>
    locks
      .mutex(`held ${n}`)
      .acquire()
      .catch((error) => {
        expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' })
        lastFailureAt = world.timeMs
      }),
  )
  await world.until(Promise.all(asked))
  expect(lastFailureAt - told.lastAt).toBeLessThanOrEqual(STORE_TIMEOUT_MS + 1)
  expect(lastFailureAt - told.lastAt).toBeGreaterThan(0)
  await world.until(locks.close())
})

it('does not take a busy store for a silent one in calls that do not wait', async () => {
  const world = new VirtualWorld({ seed: 3 })
  const { busy } = oneByOne(world)
  const locks = new Holdfast(busy, { env: world.env({ name: 'client' }), storeTimeout: STORE_TIMEOUT_MS })
  const count = (2 * STORE_TIMEOUT_MS) / CLAIM_MS
  const tried = Array.from({ length: count }, (_, n) => locks.mutex(`tried ${n}`).tryAcquire())
  const outcomes = await world.until(Promise.allSettled(tried))
  expect(outcomes.filter(({ status }) => status === 'rejected')).toEqual([])
  await world.until(locks.close())
})

it('calls a busy store busy when the wait for several locks is over', async () => {
  const world = new VirtualWorld({ seed: 4 })
  const { busy } = oneByOne(world)
  const locks = new Holdfast(busy, { env: world.env({ name: 'client' }), storeTimeout: STORE_TIMEOUT_MS })
  const startedAt = world.timeMs
  const asked = Array.from({ length: 30 }, (_, n) => locks.all([`a ${n}`, `b ${n}`]).acquire({ wait: 1000 }))
  const outcomes = await world.until(Promise.allSettled(asked))
  expect(world.timeMs - startedAt).toBeLessThan(4000)
  const reasons = outcomes.flatMap((each) => (each.status === 'rejected' ? [each.reason.code] : []))
  expect(reasons.length).toBeGreaterThan(0)
  expect(new Set(reasons)).toEqual(new Set(['ACQUIRE_TIMEOUT']))
  await world.until(locks.close({ drain: 0 }))
})
