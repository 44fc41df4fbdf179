import { expect, it } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

function scene() {
  const world = new VirtualWorld({ seed: 1 })
  const store = memory({ env: world.env({ name: 'server' }) })
  const wire = new InterceptedStore(store)
  const process = world.env({ name: 'here' })
  const here = new Holdfast(wire, { env: process })
  const there = new Holdfast(store, { env: world.env({ name: 'there' }) })
  const lock = here.mutex('door', { linger: '1h' })
  return { world, wire, process, here, there, lock }
}

it('keeps the lock through renewals, and for its time only', async () => {
  const { world, wire, here, there } = scene()
  const lock = here.mutex('window', { linger: '50s' })
  await world.until(lock.run(() => {}, { lease: '9s' }))
  await world.run(world.timeMs + 49_000)
  expect(wire.count('pulse')).toBeGreaterThan(10)
  expect(await world.until(there.mutex('window').isLocked())).toBe(true)
  await world.run(world.timeMs + 2000)
  expect(await world.until(there.mutex('window').isLocked())).toBe(false)
  await world.until(here.close({ drain: 0 }))
})

it('gives the lock back with the next answer, where the push that others wait is lost', async () => {
  const { world, wire, here, there, lock } = scene()
  await world.until(lock.run(() => {}, { lease: '9s' }))
  wire.onPush = () => {}
  const waiting = there.mutex('door').acquire({ lease: '9s' })
  // A third of the lease later the pulse asks.
  await world.run(world.timeMs + 3500)
  const hold = await world.until(waiting, 10)
  expect(hold.isValid).toBe(true)
  await world.until(hold.release())
  await world.until(here.close({ drain: 0 }))
})

it('serves no request from a lease that lapsed while its process stood still', async () => {
  const { world, process, here, there, lock } = scene()
  const before = await world.until(lock.run((hold) => hold.fence, { lease: '9s' }))
  process.pause()
  await world.run(world.timeMs + 20_000)
  const between = await world.until(there.mutex('door').run((hold) => hold.fence))
  process.resume()
  const after = await world.until(lock.run((hold) => hold.fence, { lease: '9s' }))
  expect(between).toBeGreaterThan(before)
  expect(after).toBeGreaterThan(between)
  await world.until(here.close({ drain: 0 }))
})
