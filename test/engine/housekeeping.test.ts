import { expect, it } from 'vitest'
import type { Connection, Store } from '../../src/contract/store.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'

function countingReleases(store: Store): { store: Store; released: string[] } {
  const released: string[] = []
  const connect: Store['connect'] = (client) => {
    const real = store.connect(client)
    const release: Connection['release'] = (resource, id) => {
      released.push(resource)
      return real.release(resource, id)
    }
    return new Proxy(real, {
      get: (target, key) => (key === 'release' ? release : Reflect.get(target, key)?.bind(target)),
    })
  }
  return { store: { name: store.name, capabilities: store.capabilities, connect }, released }
}

it('forgets a hold that was lost, also when nobody ever releases it', async () => {
  const { store, released } = countingReleases(memory())
  const locks = new Holdfast(store)
  const hold = await locks.mutex('lost').acquire({ maxHold: 20 })
  await locks.mutex('kept').acquire()
  await expect.poll(() => hold.signal.aborted).toBe(true)
  await locks.close({ drain: 0 })
  // What it still knows of, it gives back at the end.
  expect(released).toEqual(['kept'])
})

it('lets many waiters share one signal without a warning', async () => {
  const warnings: Error[] = []
  const onWarning = (warning: Error) => warnings.push(warning)
  process.on('warning', onWarning)
  const locks = new Holdfast(memory())
  const hold = await locks.mutex('r').acquire()
  const controller = new AbortController()
  const waiters = Array.from({ length: 50 }, () => locks.mutex('r').acquire({ signal: controller.signal }))
  controller.abort(new Error('shutting down'))
  const outcomes = await Promise.allSettled(waiters)
  expect(
    outcomes.every((outcome) => outcome.status === 'rejected' && outcome.reason.code === 'ABORTED'),
  ).toBe(true)
  await new Promise((resolve) => setImmediate(resolve))
  expect(warnings).toEqual([])
  process.off('warning', onWarning)
  await hold.release()
  await locks.close({ drain: 0 })
})
