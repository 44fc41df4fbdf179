import { expect, it } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

it('does not abort a signal that is first asked for after the release', async () => {
  const world = new VirtualWorld({ seed: 1 })
  const store = memory({ env: world.env({ name: 'server' }) })
  const locks = new Holdfast(store, { env: world.env({ name: 'client' }) })
  const outer = await world.until(locks.mutex('a').acquire({ owner: 'me' }))
  const inner = await world.until(locks.mutex('a').acquire({ owner: 'me' }))
  await world.until(inner.release())
  const { signal } = inner
  await world.until(locks.breakHold('a'))
  expect([outer.signal.aborted, signal.aborted]).toEqual([true, false])
  await world.until(locks.close({ drain: 0 }))
})
