import { expect, it } from 'vitest'
import { deferred } from '../../src/base/deferred.js'
import { HoldfastError } from '../../src/base/errors.js'
import type { Connection, Store } from '../../src/contract/store.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'

/** The store, with one of its methods done otherwise. */
function changed<M extends keyof Connection>(
  store: Store,
  method: M,
  change: (real: Connection) => Connection[M],
): Store {
  return {
    name: store.name,
    capabilities: store.capabilities,
    connect(client) {
      const real = store.connect(client)
      return new Proxy(real, {
        get: (target, key) => (key === method ? change(target) : Reflect.get(target, key)?.bind(target)),
      })
    },
  }
}

const passed = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

const codeOf = (error: unknown) => (error instanceof HoldfastError ? error.code : String(error))

it('what was passed on before a downgrade can no longer be adopted', async () => {
  const store = memory()
  await using mine = new Holdfast(store, { drain: 0 })
  await using theirs = new Holdfast(store, { drain: 0 })
  const writer = await mine.readWrite('x').write.acquire()
  const passed = await writer.export()
  await writer.downgrade()
  const reader = await theirs.readWrite('x').read.acquire()
  await expect(theirs.adopt(passed)).rejects.toMatchObject({ code: 'NOT_HELD' })
  expect([writer.isValid, reader.isValid]).toEqual([true, true])
  // As a reader it can be passed on again.
  expect((await theirs.adopt(await writer.export())).isExclusive).toBe(false)
})

it('a run that gave its hold back does not enter the hold of its owner', async () => {
  await using locks = new Holdfast(memory(), { drain: 0 })
  const door = locks.mutex('door')
  const outside = await door.acquire({ owner: 'job' })
  await door.run(
    async (hold) => {
      await hold.release()
      expect(await door.tryAcquire()).toBeNull()
    },
    { owner: 'job' },
  )
  expect(outside.isValid).toBe(true)
})

it('a nested run that gave its hold back still is inside the outer one', async () => {
  await using locks = new Holdfast(memory(), { drain: 0 })
  const door = locks.mutex('door')
  await door.run(() =>
    door.run(async (inner) => {
      await inner.release()
      await door.run(async (innermost) => expect(innermost.isValid).toBe(true), { wait: '30s' })
    }),
  )
})

it('the outer run settles after the work of a nested one that gave its hold back early', async () => {
  await using locks = new Holdfast(memory(), { drain: 0 })
  const door = locks.mutex('door')
  const order: string[] = []
  await door.run(() => {
    void door.run(async (inner) => {
      await inner.release()
      await new Promise((resolve) => setImmediate(resolve))
      order.push('inner')
    })
  })
  order.push('outer')
  expect(order).toEqual(['inner', 'outer'])
})

it('holds on one claim can be given back at the same time', async () => {
  await using locks = new Holdfast(memory(), { drain: 0 })
  const { read, write } = locks.readWrite('x')
  const writer = await write.acquire({ owner: 'me' })
  const reader = await read.acquire({ owner: 'me' })
  expect(await Promise.all([writer.release(), reader.release()])).toEqual([true, true])
})

it('a nested run that waits for its turn is sent on when the hold is lost, and away at close', async () => {
  const store = memory()
  const locks = new Holdfast(store)
  await using other = new Holdfast(store, { drain: 0 })
  const door = locks.mutex('door')
  const nested: Promise<string>[] = []
  const outer = door.run(async () => {
    void door.run(() => new Promise<never>(() => {})).catch(() => {})
    await null
    nested.push(door.run(() => 'inside').catch(codeOf))
  })
  await expect.poll(() => nested.length).toBe(1)
  const taken = other.mutex('door').acquire()
  await other.breakHold('door')
  await expect(outer).rejects.toMatchObject({ code: 'HOLD_LOST' })
  await taken
  await locks.close({ drain: 0 })
  expect(await Promise.all(nested)).toEqual(['CLOSED'])
})

it('a count-down after a reset counts, also behind one that had nothing to do', async () => {
  const store = memory()
  const [hasRead, mayGoOn] = [deferred<void>(), deferred<void>()]
  let reads = 0
  const slow = changed(store, 'read', (real) => async (key, watch) => {
    const value = await real.read(key, watch)
    if (++reads > 1) return value
    hasRead.resolve()
    await mayGoOn.promise
    return value
  })
  await using theirs = new Holdfast(store, { drain: 0 })
  await using mine = new Holdfast(slow, { drain: 0 })
  await theirs.latch('l', 1).countDown()
  const idle = mine.latch('l', 1).countDown()
  await hasRead.promise
  await theirs.latch('l', 1).reset()
  // Begun after the reset, it stands behind one that still goes by what was there before.
  const counting = mine.latch('l', 1).countDown()
  mayGoOn.resolve()
  await Promise.all([idle, counting])
  expect(await theirs.latch('l', 1).count()).toBe(0)
})

it('once does not begin with a hold that was lost while the start was written down', async () => {
  const store = memory()
  const slow = changed(store, 'write', (real) => async (change) => {
    const outcome = await real.write(change)
    await other.breakHold('once:job')
    return outcome
  })
  await using other = new Holdfast(store, { drain: 0 })
  await using locks = new Holdfast(slow, { drain: 0 })
  let begun = 0
  const run = locks.once('job', { atLeast: '1m', atMost: '1m' }, () => begun++)
  await expect(run).rejects.toMatchObject({ code: 'HOLD_LOST' })
  expect(begun).toBe(0)
})

it('a candidate that lost its hold before it was announced stands again, and nothing is kept of those that ended', async () => {
  const store = memory()
  let robberies = 1
  const slow = changed(store, 'write', (real) => async (change) => {
    const outcome = await real.write(change)
    if (robberies-- > 0) await other.breakHold('election:e')
    return outcome
  })
  await using other = new Holdfast(store, { drain: 0 })
  await using locks = new Holdfast(slow, { drain: 0 })
  const leadership = await locks.election('e').campaign({ id: 'me' })
  expect(leadership.isLeader).toBe(true)
  expect(Holdfast.contextOf(locks).leaderships.size).toBe(1)
  await leadership.hold.release()
  expect(Holdfast.contextOf(locks).leaderships.size).toBe(0)
})

it('close waits for a release that is under way', async () => {
  const store = memory()
  let lost = 1
  const flaky = changed(store, 'release', (real) => async (resource, id) => {
    if (lost-- > 0) throw new HoldfastError('STORE_UNAVAILABLE', 'lost', { retryable: true })
    return real.release(resource, id)
  })
  await using other = new Holdfast(store, { drain: 0 })
  const locks = new Holdfast(flaky)
  const hold = await locks.mutex('door').acquire()
  const released = hold.release()
  await locks.close({ drain: 0 })
  expect(await released).toBe(true)
  expect(await other.mutex('door').isLocked()).toBe(false)
})

it('an owner enters the hold that it adopted while another wait of it gave up', async () => {
  const store = memory()
  await using mine = new Holdfast(store, { drain: 0 })
  await using theirs = new Holdfast(store, { drain: 0 })
  const hold = await mine.mutex('door').acquire()
  const passed = await hold.export()
  const pending = theirs.mutex('door').acquire({ owner: 'o', wait: 50 }).catch(codeOf)
  await expect.poll(async () => (await mine.mutex('door').tryAcquire()) === null).toBe(true)
  await theirs.adopt(passed, { owner: 'o' })
  expect(await pending).toBe('ACQUIRE_TIMEOUT')
  expect(await theirs.mutex('door').tryAcquire({ owner: 'o' })).not.toBeNull()
})

it('all() gives up in time although its first holds end before it has the last', async () => {
  const late = changed(memory(), 'claim', (real) => async (request) => {
    if (request.resource === 'd') await passed(100)
    return real.claim(request)
  })
  await using locks = new Holdfast(late, { drain: 0 })
  const acquired = locks.all(['a', 'b', 'c', 'd']).acquire({ lease: 50, maxHold: 50, wait: 250 })
  await expect(acquired).rejects.toMatchObject({
    code: 'ACQUIRE_TIMEOUT',
    message: expect.stringContaining("'a', 'b', 'c' and 1 others"),
  })
})

it('a try whose answers all come too late to be worth anything ends with the store\u2019s time-out', async () => {
  const late = changed(memory(), 'claim', (real) => async (request) => {
    const reply = await real.claim(request)
    await passed(40)
    return reply
  })
  await using locks = new Holdfast(late, { storeTimeout: 300, drain: 0 })
  const tried = locks.mutex('door').tryAcquire({ lease: 20, maxHold: 20 })
  await expect(tried).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
})
