import { expect, it } from 'vitest'
import { HoldfastError } from '../../src/base/errors.js'
import type { ClaimRequest, Store } from '../../src/contract/store.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

/** The store, which answers nothing while `isSilent`. */
function mortal(store: Store, isSilent: () => boolean): Store {
  return {
    ...store,
    connect(client) {
      const real = store.connect(client)
      const silent = (): Promise<never> => new Promise(() => {})
      return new Proxy(real, {
        get: (target, key) =>
          isSilent() && key !== 'close' && key !== 'trouble'
            ? silent
            : Reflect.get(target, key)?.bind(target),
      })
    },
  }
}

it('tells a writer that readers of its process held back of a silent store when it tells them', async () => {
  const world = new VirtualWorld({ seed: 1 })
  const store = memory({ env: world.env({ name: 'server' }) })
  let isSilent = false
  const other = new Holdfast(store, { env: world.env({ name: 'other' }) })
  const locks = new Holdfast(
    mortal(store, () => isSilent),
    { env: world.env({ name: 'client' }) },
  )
  await world.until(other.readWrite('a').write.acquire())
  const { read, write } = locks.readWrite('a')
  const toldAt: number[] = []
  const told = (asking: Promise<unknown>): Promise<unknown> =>
    expect(asking.finally(() => toldAt.push(world.timeMs))).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    })
  const waiting = [told(read.acquire())]
  await world.run(world.timeMs + 100)
  waiting.push(told(read.acquire()), told(write.acquire()))
  await world.run(world.timeMs + 100)
  isSilent = true
  await world.until(Promise.all(waiting))
  expect(new Set(toldAt).size).toBe(1)
  await world.until(Promise.all([locks, other].map((each) => each.close({ drain: 0 }))))
})

for (const code of ['INVALID_ARGUMENT', 'UNSUPPORTED'] as const)
  it(`lets a writer ask that was held back by readers whose options are refused as ${code}`, async () => {
    const world = new VirtualWorld({ seed: 1 })
    const store = new InterceptedStore(memory({ env: world.env({ name: 'server' }) }))
    const locks = new Holdfast(store, { env: world.env({ name: 'client' }) })
    store.around = async (call, go) => {
      const isRefused = call.method === 'claim' && (call.about as ClaimRequest).info.includes('too long')
      if (!isRefused) return go()
      await new Promise<void>((resolve) => world.after(100, resolve))
      throw new HoldfastError(code, 'The label is too long')
    }
    const { read, write } = locks.readWrite('a')
    const reading = (): Promise<unknown> =>
      expect(read.acquire({ label: 'too long' })).rejects.toMatchObject({ code })
    // The second one has no place in the store's line yet, so the writer may not ask before it.
    const readers = [reading(), reading()]
    const writing = write.acquire()
    await world.until(Promise.all(readers))
    expect((await world.until(writing)).isValid).toBe(true)
    await world.until(locks.close({ drain: 0 }))
  })
