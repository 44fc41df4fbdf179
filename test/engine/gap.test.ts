import { expect, it } from 'vitest'
import { deferred } from '../../src/base/deferred.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

it('asks again after a gap in the pushes also for a claim whose answer is still under way', async () => {
  const world = new VirtualWorld({ seed: 1 })
  const store = memory({ env: world.env({ name: 'server' }) })
  const behindGap = new InterceptedStore(store)
  const others = new Holdfast(store, { env: world.env({ name: 'others' }) })
  const locks = new Holdfast(behindGap, { env: world.env({ name: 'locks' }) })
  const holder = await world.until(others.mutex('r').acquire())

  // The answer says that the claim waits. While it is under way the lock is handed over, and that
  // news is lost.
  const underWay = deferred<void>()
  behindGap.onPush = () => {}
  behindGap.around = async (call, go) => {
    const reply = await go()
    if (call.method === 'claim') await underWay.promise
    return reply
  }
  let isHeld = false
  const waiting = locks.mutex('r').acquire()
  void waiting.then(() => {
    isHeld = true
  })
  await world.run(world.timeMs + 1)
  await world.until(holder.release())
  behindGap.tell({ type: 'gap' })
  underWay.resolve()

  // Long before the next pulse of a place that is kept for 30 seconds.
  await world.run(world.timeMs + 100)
  expect(isHeld).toBe(true)
  await world.until(Promise.all([others.close(), locks.close()]))
})
