import { expect, it } from 'vitest'
import type { Store } from '../../src/contract/store.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
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
