import { expect, it } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

it('uses no fence beyond the blocks that were reserved, where the clock does not hide it', async () => {
  // Virtual time stands still, so the counter alone makes the fences.
  const world = new VirtualWorld({ seed: 1 })
  const store = memory({ env: world.env({ name: 'server' }) })
  const here = new Holdfast(store, { env: world.env({ name: 'here' }) })
  const there = new Holdfast(store, { env: world.env({ name: 'there' }) })
  const fences: number[] = []
  const note = (locks: Holdfast) => locks.mutex('door').run((hold) => void fences.push(hold.fence))
  for (let round = 0; round < 2; round++) {
    await world.until(Promise.all(Array.from({ length: 3000 }, () => note(here))))
    await world.until(note(there))
  }
  expect(fences).toHaveLength(2 * 3001)
  expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b))
  for (const locks of [here, there]) await world.until(locks.close({ drain: 0 }))
})
