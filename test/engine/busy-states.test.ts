import { expect, it } from 'vitest'
import type { HoldfastError } from '../../src/base/errors.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

const CALL_MS = 10
const STORE_TIMEOUT_MS = 200
const COUNT = 60

/** A client of a store that takes its time for each call on a state. */
function slowStates(): { world: VirtualWorld; store: InterceptedStore; locks: Holdfast } {
  const world = new VirtualWorld({ seed: 1 })
  const server = world.env({ name: 'server' })
  const store = new InterceptedStore(memory({ env: server }))
  store.around = async (_call, go) => {
    await new Promise<void>((resolve) => server.timer(CALL_MS, resolve, { keepAlive: true }))
    return go()
  }
  const locks = new Holdfast(store, { env: world.env({ name: 'client' }), storeTimeout: STORE_TIMEOUT_MS })
  return { world, store, locks }
}

/** Counts down many times at once. Gives the outcomes: a count, or the code of an error. */
async function countDown(locks: Holdfast, total: number): Promise<(number | string)[]> {
  const latch = locks.latch('x', total)
  const outcome = (error: unknown): string => (error as HoldfastError).code
  return Promise.all(Array.from({ length: COUNT }, () => latch.countDown().catch(outcome)))
}

it('changes a state for everyone in the queue of this client, while the store answers', async () => {
  const { world, locks } = slowStates()
  const outcomes = await world.until(countDown(locks, COUNT))
  expect(outcomes).toEqual(Array.from({ length: COUNT }, (_, before) => COUNT - 1 - before))
  expect(world.timeMs).toBeGreaterThan(2 * STORE_TIMEOUT_MS)
  await world.until(locks.close())
})

it('tells everyone in the queue what is wrong with their own change, while the store answers', async () => {
  const { world, locks } = slowStates()
  await world.until(locks.latch('x', 1).countDown())
  const outcomes = await world.until(countDown(locks, COUNT))
  expect(new Set(outcomes)).toEqual(new Set(['CAPACITY_MISMATCH']))
  await world.until(locks.close())
})

it.each([
  ['from the beginning', 0],
  ['while it is busy', 300],
])('fails all changes within the time-out when the store falls silent %s', async (_when, silentAfterMs) => {
  const { world, store, locks } = slowStates()
  const outcomes = countDown(locks, COUNT)
  await world.run(silentAfterMs)
  store.hang('read', 'write')
  const codes = (await world.until(outcomes)).filter((outcome) => typeof outcome === 'string')
  expect(new Set(codes)).toEqual(new Set(['STORE_UNAVAILABLE']))
  expect(codes.length).toBeGreaterThanOrEqual(COUNT - silentAfterMs / CALL_MS)
  // Each one behind the first asks the store once more, for a moment.
  expect(world.timeMs - silentAfterMs).toBeLessThanOrEqual(STORE_TIMEOUT_MS + CALL_MS + 2 * COUNT)
  store.heal()
  await world.until(locks.close())
})
