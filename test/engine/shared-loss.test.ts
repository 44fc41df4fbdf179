import { expect, it } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

it('tells a reader of its own loss, where the one whose lease it shares has left', async () => {
  const world = new VirtualWorld({ seed: 1 })
  const store = memory({ env: world.env({ name: 'server' }) })
  const wire = new InterceptedStore(store)
  const locks = new Holdfast(wire, { env: world.env({ name: 'client' }) })
  const operator = new Holdfast(store, { env: world.env({ name: 'operator' }) })
  const { read } = locks.readWrite('config')
  const [one, other] = await world.until(Promise.all([read.acquire(), read.acquire()]))
  let goOn = () => {}
  wire.around = async (call, go) => {
    if (call.method === 'pulse') await new Promise<void>((resolve) => (goOn = resolve))
    return go()
  }
  const extending = other.extend('1m')
  await world.run(world.timeMs + 1)
  await world.until(one.release())
  await world.until(operator.breakHold('config'))
  goOn()
  await expect(world.until(extending)).rejects.toMatchObject({ code: 'HOLD_LOST' })
  wire.heal()
  await world.until(locks.close({ drain: 0 }))
})
