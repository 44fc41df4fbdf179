import { expect, it } from 'vitest'
import { deferred } from '../../src/base/deferred.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

it('asks for more fences at once, also when an answer from before the grant is still under way', async () => {
  const world = new VirtualWorld({ seed: 1 })
  const store = memory({ env: world.env({ name: 'server' }) })
  const others = new Holdfast(store, { env: world.env({ name: 'others' }) })
  const intercepted = new InterceptedStore(store)
  const locks = new Holdfast(intercepted, { env: world.env({ name: 'locks' }), presence: '30s' })
  const first = await world.until(others.mutex('door').acquire({ lease: '1h' }))
  // The claim of the one asks for one fence, and the other one comes too late for that.
  const one = locks.mutex('door').acquire({ lease: '1h' })
  await world.run(world.timeMs + 1)
  const other = locks.mutex('door').acquire({ lease: '1h' })
  const [said, heard] = [deferred<void>(), deferred<void>()]
  intercepted.around = async (call, go) => {
    const reply = await go()
    if (call.method !== 'pulse') return reply
    intercepted.heal()
    said.resolve()
    await heard.promise
    return reply
  }
  await world.until(said.promise)
  await world.until(first.release())
  await world.until((await world.until(one)).release())
  const askedAt = world.timeMs
  heard.resolve()
  const hold = await world.until(other)
  expect(world.timeMs - askedAt).toBeLessThan(100)
  await world.until(hold.release())
  for (const each of [locks, others]) await world.until(each.close({ drain: 0 }))
})
