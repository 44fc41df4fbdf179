import { expect } from 'vitest'
import { hold, isAvailable, onEachStore, rejectsWithDom } from '../site.js'

onEachStore('the steal option', (newSite, it) => {
  it('lock available', async () => {
    const { locks } = newSite()
    expect(await locks.request('a', { steal: true }, (lock) => lock?.mode)).toBe('exclusive')
  })

  it("lock not available: the broken lock's promise rejects at once, its callback goes on", async () => {
    const { locks } = newSite()
    const robbed = await hold(locks, 'a')
    const thief = await hold(locks, 'a', { steal: true })
    const error = await rejectsWithDom(robbed.released, 'AbortError')
    expect(error.cause).toMatchObject({ code: 'HOLD_LOST' })
    expect(robbed.lock.signal.reason).toBe(error.cause)
    expect(thief.lock.fence).toBeGreaterThan(robbed.lock.fence)

    // What the robbed does later changes nothing for the new holder.
    robbed.work.reject(new Error('nobody hears this'))
    expect(await isAvailable(locks, 'a')).toBe(false)
    expect(thief.lock.signal.aborted).toBe(false)
    thief.work.resolve('kept')
    expect(await thief.released).toBe('kept')
  })

  it('a lock that is stolen before its callback was called is called back all the same', async () => {
    const { locks } = newSite()
    let isCalled = false
    const robbed = locks.request('a', async () => {
      isCalled = true
    })
    const thief = locks.request('a', { steal: true }, () => 'mine')
    await rejectsWithDom(robbed, 'AbortError')
    expect(await thief).toBe('mine')
    expect(isCalled).toBe(true)
  })

  it('a lock that is handed over and stolen in the same moment: its promise does not wait for its callback', async () => {
    const { client, locks } = newSite()
    const before = await client.mutex('a').acquire()
    const robbed = locks.request('a', () => new Promise(() => {}))
    await locks.query()
    void before.release()
    const thief = locks.request('a', { steal: true }, () => 'mine')
    await rejectsWithDom(robbed, 'AbortError')
    expect(await thief).toBe('mine')
  })

  it('takes it from all who share it', async () => {
    const { locks } = newSite()
    const readers = [await hold(locks, 'a', { mode: 'shared' }), await hold(locks, 'a', { mode: 'shared' })]
    expect(await locks.request('a', { steal: true }, () => 'mine')).toBe('mine')
    for (const { released } of readers) await rejectsWithDom(released, 'AbortError')
  })

  it("a requested lock's promise is deferred", async () => {
    const { locks } = newSite()
    const robbed = await hold(locks, 'a')
    let isGranted = false
    const waiting = locks.request('a', () => {
      isGranted = true
    })
    expect(await locks.request('a', { steal: true }, () => isGranted)).toBe(false)
    await waiting
    expect(isGranted).toBe(true)
    await rejectsWithDom(robbed.released, 'AbortError')
  })

  it('last caller wins', async () => {
    const { locks } = newSite()
    const forEver = () => new Promise(() => {})
    const [first, second] = [locks.request('a', forEver), locks.request('a', { steal: true }, forEver)]
    // Awaited from the start: the news of a robbery may come before the last one is done.
    const robbed = Promise.all([first, second].map((each) => rejectsWithDom(each, 'AbortError')))
    expect(await locks.request('a', { steal: true }, () => 'won')).toBe('won')
    await robbed
  })

  it('works across clients', async () => {
    const site = newSite()
    const robbed = await hold(site.another().locks, 'a')
    const thief = await hold(site.locks, 'a', { steal: true })
    await rejectsWithDom(robbed.released, 'AbortError')
    robbed.work.resolve(null)
    expect(await isAvailable(site.another().locks, 'a')).toBe(false)
    thief.work.resolve(null)
  })
})
