import { expect, it } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'
import { type CountedEnv, countedEnv } from './counted-env.js'

interface Scene {
  readonly world: VirtualWorld
  readonly store: InterceptedStore
  readonly env: CountedEnv
  /** Its store answers within the call. */
  readonly locks: Holdfast
  /** Its store answers later. */
  readonly slow: Holdfast
  readonly other: Holdfast
}

function scene(): Scene {
  const world = new VirtualWorld({ seed: 1 })
  const inner = memory({ env: world.env({ name: 'server' }) })
  const store = new InterceptedStore(inner)
  const env = countedEnv(world.env({ name: 'client' }))
  return {
    world,
    store,
    env,
    locks: new Holdfast(inner, { env }),
    slow: new Holdfast(store, { env: world.env({ name: 'slow' }) }),
    other: new Holdfast(inner, { env: world.env({ name: 'other' }) }),
  }
}

it('leaves nothing of a try that is aborted while a lease that lingered goes back', async () => {
  const { world, locks, other } = scene()
  const lock = locks.mutex('a', { linger: '1m' })
  await lock.run(() => {})
  const controller = new AbortController()
  const trying = lock.tryAcquire({ label: 'another', signal: controller.signal })
  controller.abort()
  await expect(trying).rejects.toMatchObject({ code: 'ABORTED' })
  await world.run(world.timeMs + 100)
  expect(await other.mutex('a').isLocked()).toBe(false)
})

it('tells a try of close() while a lease that lingered goes back', async () => {
  const { world, store, slow, other } = scene()
  const lock = slow.mutex('a', { linger: '1m' })
  await world.until(lock.run(() => {}))
  store.around = async (call, go) => {
    if (call.method === 'release') await new Promise<void>((resolve) => world.after(1000, resolve))
    return go()
  }
  const claims = store.count('claim')
  const trying = expect(lock.tryAcquire({ label: 'another' })).rejects.toMatchObject({ code: 'CLOSED' })
  const closing = slow.close({ drain: 0 })
  await world.until(trying, 500)
  await world.until(closing)
  expect(store.count('claim')).toBe(claims)
  expect(await world.until(other.mutex('a').isLocked())).toBe(false)
})

it('does not linger after a hold that is released while its client closes', async () => {
  const { world, env, locks, other } = scene()
  const [hold, another] = [
    await locks.mutex('a', { linger: '1h' }).acquire(),
    await locks.mutex('b').acquire(),
  ]
  const closing = locks.close({ drain: '10s' })
  await hold.release()
  expect(await other.mutex('a').isLocked()).toBe(false)
  await another.release()
  await world.until(closing)
  expect(env.kept).toBe(0)
})

it('does not keep the process alive for a lock that lingered and went back before its time', async () => {
  const { world, env, locks, other } = scene()
  await locks.mutex('a', { linger: '1h' }).run(() => {})
  expect(env.kept).toBe(1)
  await other.mutex('a').run(() => {})
  await world.run(world.timeMs + 100)
  expect(env.kept).toBe(0)
})

it('does not linger where the store would not tell the holder that others wait', async () => {
  const { world, locks, slow, other } = scene()
  const lock = locks.mutex('a', { linger: '1m' })
  const hold = await lock.tryAcquire()
  await hold?.release()
  for (const each of [lock, other.mutex('a')])
    await world.until(
      each.run(() => {}),
      100,
    )
  // The claim was sent for a request that does not linger.
  const controller = new AbortController()
  const first = slow.mutex('b').acquire({ signal: controller.signal })
  const second = slow.mutex('b', { linger: '1m' }).run(() => {})
  controller.abort()
  await expect(first).rejects.toMatchObject({ code: 'ABORTED' })
  await world.until(second)
  await world.until(
    other.mutex('b').run(() => {}),
    100,
  )
})

it('does not let a try overtake a reader of its process by a lock that lingers', async () => {
  const { world, store, slow } = scene()
  store.around = async (_call, go) => {
    await new Promise<void>((resolve) => world.after(10, resolve))
    return go()
  }
  const { read, write } = slow.readWrite('a', { linger: '1m' })
  await world.until(write.run(() => {}))
  const reading = read.acquire()
  expect(await world.until(write.tryAcquire())).toBe(null)
  await world.until(reading.then((hold) => hold.release()))
})

it('serves a writer from a lease that lingers when the reader before it gives up', async () => {
  const { world, store, slow } = scene()
  const { read, write } = slow.readWrite('a', { linger: '1m' })
  await world.until(write.run(() => {}))
  store.hang('claim')
  const controller = new AbortController()
  const reading = read.acquire({ signal: controller.signal })
  const writing = write.run(() => {})
  controller.abort()
  await expect(reading).rejects.toMatchObject({ code: 'ABORTED' })
  await world.until(writing, 100)
})
