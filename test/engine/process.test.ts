import { expect, it } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'
import { countedEnv } from './counted-env.js'

it('gives up calls that are under way at close(), so that the process can end', async () => {
  const world = new VirtualWorld({ seed: 1 })
  const store = new InterceptedStore(memory({ env: world.env({ name: 'server' }) }))
  const env = countedEnv(world.env({ name: 'client' }))
  const locks = new Holdfast(store, { env })
  await world.until(locks.mutex('a').acquire())
  store.hang('pulse', 'inspect')
  // A renewal is due after a third of the lease.
  await world.run(world.timeMs + 10_100)
  expect(env.kept).toBe(1)
  const asking = expect(locks.mutex('a').isLocked()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  await world.until(locks.close({ drain: 0 }))
  await world.until(asking)
  expect(env.kept).toBe(0)
})

it('does not keep the process alive for a reader that is served while it is added', async () => {
  const world = new VirtualWorld({ seed: 1 })
  const env = countedEnv(world.env({ name: 'client' }))
  const locks = new Holdfast(memory({ env: world.env({ name: 'server' }) }), { env })
  const { read } = locks.readWrite('a')
  const first = await read.acquire()
  // Nobody may join it after this: the next reader asks for a lease of its own, and gets it.
  await world.until(first.extend('40s'))
  const second = await read.acquire()
  expect(env.kept).toBe(0)
  await Promise.all([first.release(), second.release()])
  await world.until(locks.close())
  expect(env.kept).toBe(0)
})

it('keeps the process alive while a late grant is confirmed', async () => {
  const world = new VirtualWorld({ seed: 1 })
  const store = new InterceptedStore(memory({ env: world.env({ name: 'server' }) }))
  const env = countedEnv(world.env({ name: 'client' }))
  const locks = new Holdfast(store, { env })
  store.around = async (call, go) => {
    const reply = await go()
    if (call.method === 'claim' && store.count('claim') === 1)
      await new Promise<void>((resolve) => world.after(600, resolve))
    return reply
  }
  const acquiring = locks.mutex('a').acquire({ lease: 500 })
  await world.run(600)
  expect(store.count('pulse')).toBe(0)
  expect(env.kept).toBe(1)
  const hold = await world.until(acquiring)
  expect(env.kept).toBe(0)
  await world.until(hold.release())
  await world.until(locks.close())
})
