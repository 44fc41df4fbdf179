import { expect } from 'vitest'
import { hold, isAvailable, neverCalled, onEachStore, rejectsWithDom } from '../site.js'

onEachStore('clients, as windows, frames and workers are in a browser', (newSite, it) => {
  it('share in shared mode', async () => {
    const site = newSite()
    const there = await hold(site.another().locks, 'a', { mode: 'shared' })
    await site.locks.request('a', { mode: 'shared' }, async () => {
      there.work.resolve(null)
      await there.released
    })
  })

  it('exclude each other in exclusive mode', async () => {
    const site = newSite()
    const there = await hold(site.another().locks, 'a')
    let isGranted = false
    const blocked = site.locks.request('a', () => {
      isGranted = true
    })
    expect(await isAvailable(site.locks, 'a')).toBe(false)
    expect(isGranted).toBe(false)
    there.work.resolve(null)
    await blocked
    expect(isGranted).toBe(true)
  })

  it('that end give back what they hold, and leave the lines', async () => {
    const site = newSite()
    const [holder, waiter] = [site.another(), site.another()]
    const held = await hold(holder.locks, 'a')
    const gone = waiter.locks.request('a', neverCalled)
    const goneWaiting = rejectsWithDom(gone, 'InvalidStateError')
    await waiter.locks.query()
    const blocked = site.locks.request('a', () => 'granted')
    expect((await site.locks.query()).pending).toHaveLength(2)

    await waiter.client.close()
    expect((await goneWaiting).cause).toMatchObject({ code: 'CLOSED' })
    await holder.client.close({ drain: 0 })
    const error = await rejectsWithDom(held.released, 'AbortError')
    expect(error.message).toMatch(/^The lock 'a' was released, because its client was closed/)
    expect(error.cause).toMatchObject({ code: 'HOLD_LOST', cause: { code: 'CLOSED' } })
    expect(await blocked).toBe('granted')
    expect(await site.locks.query()).toEqual({ held: [], pending: [] })
  })

  it('that have ended refuse everything, before they look at the name', async () => {
    const { client, locks } = newSite()
    await client.close()
    await rejectsWithDom(locks.request('a', neverCalled), 'InvalidStateError')
    await rejectsWithDom(locks.request('-', neverCalled), 'InvalidStateError')
    await rejectsWithDom(locks.query(), 'InvalidStateError')
    await expect(Reflect.apply(locks.request, locks, ['a'])).rejects.toThrow(TypeError)
  })

  it('of different spaces have independent locks, as storage buckets have', async () => {
    const site = newSite()
    const { locks } = site.another('drafts')
    await site.locks.request('a', async () => {
      expect(await isAvailable(locks, 'a')).toBe(true)
      expect(await locks.query()).toEqual({ held: [], pending: [] })
      expect(await isAvailable(site.another().locks, 'a')).toBe(false)
    })
  })
})

onEachStore('beside the other primitives', (newSite, it) => {
  it('a mutex, a writer and an exclusive lock of one name exclude each other', async () => {
    const { client, locks } = newSite()
    await client.mutex('a').run(async () => expect(await isAvailable(locks, 'a')).toBe(false))
    await client.readWrite('a').read.run(async () => {
      expect(await isAvailable(locks, 'a')).toBe(false)
      expect(await isAvailable(locks, 'a', { mode: 'shared' })).toBe(true)
    })
    await locks.request('a', async (lock) => {
      expect(await client.mutex('a').tryAcquire()).toBe(null)
      expect(lock.fence).toBeGreaterThan(0)
    })
  })

  it('a semaphore of that name is another thing', async () => {
    const { client, locks } = newSite()
    await using _permit = await client.semaphore('gpu', 4).acquire()
    await expect(locks.request('gpu', neverCalled)).rejects.toMatchObject({ code: 'CAPACITY_MISMATCH' })
  })
})
