import { expect, it } from 'vitest'
import type { Cancel, Env } from '../../src/base/env.js'
import { Holdfast, type HoldfastOptions } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

/**
 * Two clients of one store; what the first one sends can be disturbed, and the timers are seen that
 * keep its process alive.
 */
function scene(options: HoldfastOptions = {}) {
  const world = new VirtualWorld({ seed: 1 })
  const store = memory({ env: world.env({ name: 'server' }) })
  const wire = new InterceptedStore(store)
  const vital = new Set<Cancel>()
  const holds: Cancel[] = []
  const process = world.env({ name: 'here' })
  const env: Env = {
    now: () => process.now(),
    wallMs: () => process.wallMs(),
    random: () => process.random(),
    id: () => process.id(),
    timer(ms, run, { keepAlive }) {
      const end = (): void => {
        cancel()
        vital.delete(end)
      }
      const fire = (): void => {
        vital.delete(end)
        run()
      }
      const cancel = process.timer(ms, fire, { keepAlive })
      if (keepAlive) vital.add(end)
      return end
    },
    keepProcess() {
      const hold = (): void => {}
      holds.push(hold)
      vital.add(hold)
    },
    letProcessEnd() {
      const hold = holds.pop()
      if (hold) vital.delete(hold)
    },
  }
  const here = new Holdfast(wire, { ...options, env })
  const there = new Holdfast(store, { env: world.env({ name: 'there' }) })
  return { world, wire, vital, here, there }
}

it('renews a hold that was asked for anew while the beat of an earlier bearer was under way', async () => {
  const { world, wire, here, there } = scene()
  const door = here.mutex('door')
  const first = await world.until(door.acquire({ lease: 900 }))
  const second = door.acquire({ lease: 900 })
  let letGo = () => {}
  wire.around = async (call, go) => {
    const reply = await go()
    if (call.method === 'pulse') await new Promise<void>((resolve) => (letGo = resolve))
    return reply
  }
  await world.run(world.timeMs + 310)
  expect(wire.count('pulse')).toBe(1)
  // There is no fence left, so the second one has to ask; before it is answered, the grant is taken
  // from both.
  await world.until(first.release())
  wire.heal()
  await world.until(there.breakHold('door'))
  const hold = await world.until(second)
  letGo()
  await world.run(world.timeMs + 5000)
  expect(hold.isValid).toBe(true)
  await world.until(Promise.all([here.close(), there.close()]))
})

it('passes a hold on without asking also where places are kept for much longer than holds', async () => {
  const { world, wire, here, there } = scene({ presence: '30s' })
  const door = here.mutex('door')
  const first = await world.until(door.acquire({ lease: '10s' }))
  const neighbours = Array.from({ length: 20 }, () => door.run(() => {}, { lease: '10s' }))
  await world.until(first.release())
  await world.until(Promise.all(neighbours))
  // The first one had no fence for others.
  expect(wire.calls.map(({ method }) => method)).toEqual(['claim', 'pulse', 'release'])
  await world.until(Promise.all([here.close(), there.close()]))
})

it('keeps the process alive for one who waits without limit in the place of another', async () => {
  const { world, vital, here, there } = scene()
  const holder = await world.until(there.mutex('door').acquire())
  const giveUp = new AbortController()
  const first = here.mutex('door').acquire({ signal: giveUp.signal })
  await world.run(world.timeMs + 1)
  const second = here.mutex('door').acquire()
  giveUp.abort()
  await expect(first).rejects.toMatchObject({ code: 'ABORTED' })
  await world.run(world.timeMs + 1)
  expect(vital.size).toBe(1)
  await world.until(holder.release())
  const hold = await world.until(second)
  expect(vital.size).toBe(0)
  await world.until(hold.release())
  await world.until(Promise.all([here.close(), there.close()]))
})

it('believes the news that others wait more than an answer that was given before', async () => {
  const { world, wire, here, there } = scene()
  const door = here.mutex('door')
  const first = await world.until(door.acquire())
  const [second, third] = [door.acquire(), door.acquire()]
  // So that it goes back to the store, and the next claim comes with fences for all.
  await world.until(first.extend(1))
  let letGo = () => {}
  wire.around = async (call, go) => {
    const reply = await go()
    if (call.method === 'claim')
      await new Promise<void>((resolve) => {
        letGo = resolve
      })
    return reply
  }
  await world.until(first.release())
  const other = there.mutex('door').acquire()
  await world.run(world.timeMs + 1)
  letGo()
  wire.heal()
  const hold = await world.until(second)
  await world.run(world.timeMs + 100)
  await world.until(hold.release())
  const next = await world.until(Promise.race([other, third]))
  expect(next).toBe(await world.until(other, 1))
  await world.until(next.release())
  await world.until(third)
  await world.until(Promise.all([here.close(), there.close()]))
})
