import { expect, it } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

const LEASE_MS = 3000

class Scene {
  readonly world = new VirtualWorld({ seed: 1 })
  readonly #store = memory({ env: this.world.env({ name: 'server' }) })
  readonly locks = this.client('holder')
  readonly #judge = this.client('judge')

  client(name: string): Holdfast {
    return new Holdfast(this.#store, { env: this.world.env({ name }) })
  }

  async run(ms: number): Promise<void> {
    await this.world.run(this.world.timeMs + ms)
  }

  async isLocked(): Promise<boolean> {
    return this.world.until(this.#judge.mutex('a').isLocked())
  }
}

it('a hold that is left to lapse ends with its lease, and tells its holder', async () => {
  const scene = new Scene()
  const { world, locks } = scene
  const hold = await world.until(locks.mutex('a').acquire({ lease: LEASE_MS }))
  const { signal } = hold
  hold.letLapse()
  await scene.run(LEASE_MS * 0.9)
  expect(hold.isValid).toBe(true)
  expect(await scene.isLocked()).toBe(true)
  await scene.run(LEASE_MS * 0.11)
  expect(hold.isValid).toBe(false)
  expect(signal.reason).toMatchObject({
    code: 'HOLD_LOST',
    message: expect.stringContaining('its time is over'),
  })
  expect(await scene.isLocked()).toBe(false)
})

it('it can be extended, and then ends with the extension', async () => {
  const scene = new Scene()
  const { world, locks } = scene
  const hold = await world.until(locks.mutex('a').acquire({ lease: LEASE_MS }))
  hold.letLapse()
  await scene.run(LEASE_MS / 2)
  await world.until(hold.extend(10 * LEASE_MS))
  await scene.run(9 * LEASE_MS)
  expect(hold.isValid).toBe(true)
  await scene.run(1.2 * LEASE_MS)
  expect(hold.isValid).toBe(false)
  expect(await scene.isLocked()).toBe(false)
})

it('its holder is told before its end that it was broken', async () => {
  const scene = new Scene()
  const { world, locks } = scene
  const hold = await world.until(locks.mutex('a').acquire({ lease: LEASE_MS }))
  const { signal } = hold
  hold.letLapse()
  await world.until(scene.client('operator').breakHold('a'))
  await scene.run(LEASE_MS / 2)
  expect(signal.aborted).toBe(true)
})

it.each([0, 0.8])('the next holder on the same lease is renewed, after %f of the lease', async (part) => {
  const scene = new Scene()
  const { world, locks } = scene
  const first = await world.until(locks.mutex('a').acquire({ lease: LEASE_MS }))
  const waiting = locks.mutex('a').acquire({ lease: LEASE_MS })
  first.letLapse()
  await scene.run(part * LEASE_MS)
  await world.until(first.release())
  const second = await world.until(waiting)
  await scene.run(5 * LEASE_MS)
  expect(second.isValid).toBe(true)
})

it('a client that closes leaves it in the store, until it lapses', async () => {
  const scene = new Scene()
  const { world, locks } = scene
  const hold = await world.until(locks.mutex('a').acquire({ lease: LEASE_MS }))
  hold.letLapse()
  await world.until(locks.close({ drain: 0 }))
  expect(hold.isValid).toBe(false)
  expect(await scene.isLocked()).toBe(true)
  await scene.run(1.1 * LEASE_MS)
  expect(await scene.isLocked()).toBe(false)
})
