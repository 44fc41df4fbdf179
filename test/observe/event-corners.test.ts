import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it, onTestFinished, vi } from 'vitest'
import { memoryGuard } from '../../src/fence/index.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { redis } from '../../src/stores/redis/index.js'
import { InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'
import { describeOn } from '../servers/availability.js'
import { startRedis } from '../servers/redis.js'
import { named, outcomes, recordEvents } from './recorder.js'

interface Scene {
  readonly world: VirtualWorld
  readonly store: InterceptedStore
  readonly locks: Holdfast
  readonly operator: Holdfast
}

function scene(): Scene {
  const world = new VirtualWorld({ seed: 1 })
  const inner = memory({ env: world.env({ name: 'server' }) })
  const store = new InterceptedStore(inner)
  const locks = new Holdfast(store, { env: world.env({ name: 'client' }), storeTimeout: '3s' })
  const operator = new Holdfast(inner, { env: world.env({ name: 'operator' }) })
  return { world, store, locks, operator }
}

it('a hold that the store no longer had at its release counts as lost', async () => {
  const { world, store, locks, operator } = scene()
  const events = recordEvents()
  const hold = await world.until(locks.mutex('a').acquire())
  store.onPush = () => {}
  await world.until(operator.breakHold('a'))
  expect(await world.until(hold.release())).toBe(false)
  expect(named(events, 'hold:asyncStart').map(({ outcome }) => outcome)).toEqual(['released'])
  expect(outcomes(events, 'hold')).toEqual(['lost'])
})

it('a hold that is lost before its caller hears of it still has a beginning and an end', async () => {
  const { world, store, locks, operator } = scene()
  const events = recordEvents()
  const first = await world.until(operator.mutex('a').acquire())
  const second = locks.mutex('a').acquire()
  await world.run(world.timeMs + 5)
  // The loss comes in the same turn as the grant, before the promise of the caller.
  store.onPush = (news, deliver) => {
    deliver()
    if (news.type === 'granted') store.tell({ type: 'lost', resource: news.resource, id: news.id })
  }
  await world.until(first.release())
  const hold = await world.until(second)
  expect(hold.isValid).toBe(false)
  const ofHold = events.map(({ event }) => event).filter((event) => event.startsWith('hold:'))
  expect(ofHold.slice(-5)).toEqual([
    'hold:start',
    'hold:end',
    'hold:asyncStart',
    'hold:error',
    'hold:asyncEnd',
  ])
})

it('a release that the store does not hear of is published with its error', async () => {
  const { world, store, locks } = scene()
  const events = recordEvents()
  const hold = await world.until(locks.mutex('a').acquire())
  store.around = async (call, go) => {
    if (call.method === 'release') throw new Error('broken pipe')
    return go()
  }
  const releasing = expect(hold.release()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  await world.until(releasing)
  expect(outcomes(events, 'hold')).toEqual(['released'])
  expect(named(events, 'hold:error')).toHaveLength(1)
  const failures = named(events, 'store').map(({ context }) => context)
  expect(failures).toMatchObject([{ space: 'default', store: 'memory', error: { message: 'broken pipe' } }])
})

it('a request that began before anybody subscribed publishes nothing', async () => {
  const locks = new Holdfast(memory())
  const hold = await locks.mutex('a').acquire()
  const waiting = locks.mutex('a').acquire()
  const events = recordEvents()
  await hold.release()
  await (await waiting).release()
  expect(events.filter(({ event }) => !event.startsWith('pulse:'))).toEqual([])
  await locks.close()
})

it('a stale fence is published where it is refused', () => {
  const events = recordEvents()
  const guard = memoryGuard()
  guard.check({ resource: 'a', fence: 5 })
  expect(() => guard.check({ resource: 'a', fence: 4 })).toThrow('stale')
  expect(named(events, 'fence').map(({ context }) => context)).toEqual([
    { resource: 'a', fence: 4, newestFence: 5 },
  ])
})

it('a subscriber that throws harms no lock: the error is an uncaught exception', async () => {
  const program = join(import.meta.dirname, 'throwing-subscriber.mjs')
  const { stdout } = await promisify(execFile)(process.execPath, [program])
  expect(JSON.parse(stdout)).toEqual({
    value: 42,
    isLocked: false,
    uncaught: ['acquire:start', 'acquire:asyncEnd', 'hold:start', 'bound', 'run:start', 'hold:asyncEnd'],
  })
})

describeOn('redis', 'the events of a Redis that is gone', () => {
  it('tell of failed calls, of pulses, and of the hold that expires', async () => {
    const server = await startRedis()
    const locks = new Holdfast(redis(server.url))
    onTestFinished(async () => {
      await locks.close({ drain: 0 }).catch(() => {})
      await server.stop()
    })
    const events = recordEvents()
    const hold = await locks.mutex('a').acquire({ lease: '3s' })
    await server.kill()
    await vi.waitFor(() => expect(hold.signal.aborted).toBe(true), { timeout: 20_000 })
    expect(outcomes(events, 'hold')).toEqual(['expired'])
    expect(named(events, 'store').length).toBeGreaterThan(0)
    expect(named(events, 'pulse:error').length).toBeGreaterThan(0)
    await expect(locks.mutex('b').acquire({ wait: '3s' })).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    })
    expect(outcomes(events, 'acquire')).toEqual(['granted', 'failed'])
  })
})
