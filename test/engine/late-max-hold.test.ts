import { expect, it } from 'vitest'
import type { Push } from '../../src/contract/store.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

it('counts the maxHold of a late push from the last answer that said "waiting"', async () => {
  const world = new VirtualWorld({ seed: 1 })
  const store = memory({ env: world.env({ name: 'server' }) })
  const wire = new InterceptedStore(store)
  const here = new Holdfast(wire, { env: world.env({ name: 'here' }), presence: 1500 })
  const there = new Holdfast(store, { env: world.env({ name: 'there' }) })
  const first = await world.until(there.mutex('door').acquire())
  let isGranted = false
  const waiting = here.mutex('door').acquire({ maxHold: 1000, lease: 1500 })
  void waiting.then(() => {
    isGranted = true
  })
  // The push is held back; the pulse finds the grant, and its answer comes when the grant is over.
  const pushes: (() => void)[] = []
  wire.onPush = (_news: Push, deliver) => void pushes.push(deliver)
  wire.around = async (call, go) => {
    const reply = await go()
    if (call.method === 'pulse') await new Promise<void>((resolve) => world.after(950, resolve))
    return reply
  }
  await world.run(world.timeMs + 400)
  await world.until(first.release())
  const over = world.timeMs + 1000
  while (wire.count('pulse') === 0) await world.run(world.timeMs + 1)
  const answeredAt = world.timeMs + 950
  expect(answeredAt).toBeGreaterThan(over)
  await world.run(answeredAt + 2)
  const second = await world.until(there.mutex('door').tryAcquire(), 0)
  expect(second?.isValid).toBe(true)
  for (const deliver of pushes) deliver()
  await world.run(world.timeMs + 2)
  expect(isGranted).toBe(false)
  wire.heal()
  if (second) await world.until(second.release())
  await world.until(waiting)
  await world.until(here.close({ drain: 0 }))
})
