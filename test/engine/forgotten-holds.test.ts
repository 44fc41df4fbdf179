import { expect, it, vi } from 'vitest'
import { EXCLUSIVE } from '../../src/contract/constants.js'
import type { Entry } from '../../src/engine/request.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { requestSpec } from '../../src/primitives/options.js'
import { memory } from '../../src/stores/memory/index.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

const LEASE_MS = 30_000

class Scene {
  readonly world = new VirtualWorld({ seed: 1 })
  readonly locks = new Holdfast(memory({ env: this.world.env({ name: 'server' }) }), {
    env: this.world.env({ name: 'client' }),
  })

  acquire(resource: string): Promise<Entry | null> {
    const kind = { resource, permits: EXCLUSIVE, capacity: EXCLUSIVE, isReentrant: true }
    const spec = requestSpec(kind, { owner: 'me', lease: LEASE_MS }, null)
    const { owners } = Holdfast.contextOf(this.locks)
    return this.world.until(owners.acquire(spec, { waitMs: 0, signal: undefined }))
  }

  /** A hold that the garbage collector has found. */
  async forget(resource: string): Promise<void> {
    const entry = await this.acquire(resource)
    if (entry) entry.trace = { isForgotten: () => true, stack: null, onRelease() {} }
  }

  async end(): Promise<void> {
    await this.world.until(this.locks.close({ drain: 0 }))
  }
}

it('renews no forgotten hold along with others', async () => {
  const scene = new Scene()
  const warning = vi.spyOn(process, 'emitWarning').mockReturnValue()
  for (let index = 0; index < 20; index++) await scene.acquire(`kept:${index}`)
  await scene.forget('forgotten')
  await scene.world.run(scene.world.timeMs + 1.5 * LEASE_MS)
  expect(warning).toHaveBeenCalledTimes(1)
  warning.mockRestore()
  expect(await scene.world.until(scene.locks.mutex('forgotten').isLocked())).toBe(false)
  await scene.end()
})

it('renews a claim again whose owner enters it after its hold was forgotten', async () => {
  const scene = new Scene()
  const warning = vi.spyOn(process, 'emitWarning').mockReturnValue()
  await scene.forget('a')
  await scene.world.run(scene.world.timeMs + LEASE_MS / 2)
  expect(warning).toHaveBeenCalledTimes(1)
  warning.mockRestore()
  const again = await scene.acquire('a')
  await scene.world.run(scene.world.timeMs + 10 * LEASE_MS)
  expect(again?.request.lostBecause).toBe(null)
  await scene.end()
})

it('gives a lease back when its last reader leaves, though an earlier one was forgotten', async () => {
  const { world, locks } = new Scene()
  const { engine } = Holdfast.contextOf(locks)
  const warning = vi.spyOn(process, 'emitWarning').mockReturnValue()
  const kind = { resource: 'a', permits: 1, capacity: EXCLUSIVE, isReentrant: true, order: 'cohort' } as const
  const spec = requestSpec(kind, { lease: LEASE_MS }, null)
  const acquire = async (): Promise<Entry> => {
    const entry = await world.until(
      Promise.resolve(engine.acquire(spec, { waitMs: 1000, signal: undefined })),
    )
    if (!entry) throw new Error('refused')
    return entry
  }
  const forgotten = await acquire()
  forgotten.trace = { isForgotten: () => true, stack: null, onRelease() {} }
  await world.run(world.timeMs + LEASE_MS / 2)
  expect(warning).toHaveBeenCalledTimes(1)
  warning.mockRestore()
  const second = await acquire()
  expect(forgotten.request.phase).toBe('over')
  await engine.leave(second)
  expect(await world.until(locks.mutex('a').isLocked())).toBe(false)
  await world.until(locks.close({ drain: 0 }))
})
