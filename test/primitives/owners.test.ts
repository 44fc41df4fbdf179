import { expect, it } from 'vitest'
import { deferred } from '../../src/base/deferred.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

function scene() {
  const world = new VirtualWorld({ seed: 1 })
  const store = memory({ env: world.env({ name: 'server' }) })
  const client = (name: string): Holdfast => new Holdfast(store, { env: world.env({ name }) })
  return { world, locks: client('client'), other: client('other') }
}

it('the requests of one owner that wait for each other count as waiters', async () => {
  const { world, locks, other } = scene()
  const holder = await world.until(other.mutex('a').acquire())
  const ask = () => locks.mutex('a').acquire({ owner: 'alice', maxWaiters: 2, lease: '1h' })
  const admitted = [ask(), ask()]
  await world.run(world.timeMs + 10)
  for (let n = 0; n < 2; n++) await world.until(expect(ask()).rejects.toMatchObject({ code: 'LINE_FULL' }))
  await world.until(holder.release())
  for (const hold of await world.until(Promise.all(admitted))) expect(hold.isValid).toBe(true)
  // Nobody waits any more: it enters again.
  expect((await world.until(ask())).isValid).toBe(true)
})

it('a request that gives up waiting for another one of its owner makes room for the next', async () => {
  const { world, locks, other } = scene()
  await world.until(other.mutex('a').acquire({ lease: '1h' }))
  const ask = (wait: number) => locks.mutex('a').acquire({ owner: 'alice', maxWaiters: 2, wait })
  const first = expect(ask(60_000)).rejects.toMatchObject({ code: 'ACQUIRE_TIMEOUT' })
  await world.run(world.timeMs + 10)
  for (let n = 0; n < 3; n++)
    await world.until(expect(ask(100)).rejects.toMatchObject({ code: 'ACQUIRE_TIMEOUT' }))
  await world.until(first)
})

it('an owner enters again what its nested run has acquired after the outer hold was lost', async () => {
  const { world, locks, other } = scene()
  const lock = locks.mutex('a')
  const options = { owner: 'alice', lease: '1h' } as const
  const isInside = deferred<number>()
  const end = deferred<void>()
  const outer = lock.run(async () => {
    const first = lock.run(() => end.promise, options)
    const second = lock.run((hold) => {
      isInside.resolve(hold.fence)
      return end.promise
    }, options)
    await Promise.all([first, second])
  }, options)
  outer.catch(() => {})
  await world.run(world.timeMs + 10)
  await world.until(other.breakHold('a'))
  const fence = await world.until(isInside.promise)
  expect((await world.until(lock.tryAcquire(options)))?.fence).toBe(fence)
  end.resolve()
  await world.until(expect(outer).rejects.toMatchObject({ code: 'HOLD_LOST' }))
})
