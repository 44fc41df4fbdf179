import { expect, it } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

function client(): { world: VirtualWorld; locks: Holdfast } {
  const world = new VirtualWorld({ seed: 1 })
  const store = memory({ env: world.env({ name: 'server' }) })
  return { world, locks: new Holdfast(store, { env: world.env({ name: 'client' }) }) }
}

it('waits for no run that is itself waiting for close()', async () => {
  const { world, locks } = client()
  const close = (): Promise<void> => locks.close({ drain: Infinity })
  const runs = Promise.allSettled(['a', 'b', 'c'].map((name) => locks.mutex(name).run(close)))
  const outcomes = await world.until(runs)
  expect(outcomes).toMatchObject(Array(3).fill({ status: 'rejected', reason: { code: 'HOLD_LOST' } }))
})

it('takes the shorter drain of a close() by a listener that is told of the first one', async () => {
  const { world, locks } = client()
  const hold = await world.until(locks.mutex('a').acquire())
  const leadership = await world.until(locks.election('e').campaign())
  leadership.signal.addEventListener('abort', () => void locks.close({ drain: 0 }))
  const startedAt = world.timeMs
  await world.until(locks.close({ drain: '1h' }))
  expect(world.timeMs - startedAt).toBeLessThan(60_000)
  expect(hold.isValid).toBe(false)
})
