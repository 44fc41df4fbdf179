import { expect, it } from 'vitest'
import { deferred } from '../../src/base/deferred.js'
import type { Store } from '../../src/contract/store.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import type { ResourceView } from '../../src/primitives/views.js'
import { memory } from '../../src/stores/memory/index.js'

/** The store, with hand-offs to be confirmed, and pulses that wait to be let through. */
function confirming(store: Store) {
  const gate = deferred<void>()
  const counts = { pulses: 0 }
  const wrapped: Store = {
    name: store.name,
    capabilities: { ...store.capabilities, confirmHandOffs: true },
    connect(client) {
      const real = store.connect(client)
      return new Proxy(real, {
        get(target, key) {
          const method = Reflect.get(target, key)?.bind(target)
          if (key !== 'pulse') return method
          return async (beats: unknown) => {
            counts.pulses++
            await gate.promise
            return method(beats)
          }
        },
      })
    },
  }
  return { wrapped, letPulsesThrough: gate.resolve, counts }
}

async function lines(locks: Holdfast) {
  const found: ResourceView[] = []
  for await (const line of locks.inspect()) found.push(line)
  return found
}

it('gives a handed-off hold out only after its own pulse, where the store wants that', async () => {
  const store = memory()
  const { wrapped, letPulsesThrough, counts } = confirming(store)
  await using others = new Holdfast(store, { drain: 0 })
  await using careful = new Holdfast(wrapped, { drain: 0 })
  const first = await others.mutex('r').acquire()
  let isHeld = false
  const waiting = careful.mutex('r').acquire()
  void waiting.then(() => {
    isHeld = true
  })
  await expect.poll(async () => (await lines(others))[0]?.waiters.length).toBe(1)
  await first.release()
  await expect.poll(() => counts.pulses).toBe(1)
  // The store has granted it, and has said so; but nobody relies on it yet.
  expect((await lines(others))[0]?.holders).toHaveLength(1)
  expect(isHeld).toBe(false)
  letPulsesThrough()
  expect((await waiting).isValid).toBe(true)
})
