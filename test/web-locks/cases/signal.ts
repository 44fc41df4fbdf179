import { getEventListeners } from 'node:events'
import { expect } from 'vitest'
import { hold, isAvailable, neverCalled, onEachStore, rejectsWithDom } from '../site.js'

onEachStore('the signal option', (newSite, it) => {
  it('must be an AbortSignal', async () => {
    const { locks } = newSite()
    for (const signal of ['string', 12.34, false, {}, null, Symbol('s'), () => {}, globalThis])
      await expect(Reflect.apply(locks.request, locks, ['a', { signal }, neverCalled])).rejects.toThrow(
        TypeError,
      )
  })

  it('already aborted: rejects with its reason', async () => {
    const { locks } = newSite()
    const signal = AbortSignal.abort()
    const error = await rejectsWithDom(locks.request('a', { signal }, neverCalled), 'AbortError')
    expect(error).toBe(signal.reason)
    const custom = { signal: AbortSignal.abort('My dog ate it.') }
    await expect(locks.request('a', custom, neverCalled)).rejects.toBe('My dog ate it.')
  })

  it('aborted while the request waits: rejects with its reason, and leaves the line', async () => {
    const { locks } = newSite()
    const { work, released } = await hold(locks, 'a')
    for (const reason of [undefined, 'My cat handled it']) {
      const controller = new AbortController()
      const waiting = locks.request('a', { signal: controller.signal }, neverCalled)
      expect((await locks.query()).pending).toHaveLength(1)
      controller.abort(reason)
      await expect(waiting).rejects.toBe(controller.signal.reason)
      if (reason === undefined) await rejectsWithDom(waiting, 'AbortError')
      expect((await locks.query()).pending).toEqual([])
    }
    work.resolve(null)
    await released
    expect(await isAvailable(locks, 'a')).toBe(true)
  })

  it('of a time-out ends the wait', async () => {
    const { locks } = newSite()
    const { work } = await hold(locks, 'a')
    const waiting = locks.request('a', { signal: AbortSignal.timeout(10) }, neverCalled)
    await expect(waiting).rejects.toMatchObject({ name: 'TimeoutError' })
    work.resolve(null)
  })

  it('not aborted: nothing happens, and nobody listens to it any more', async () => {
    const { locks } = newSite()
    const { signal } = new AbortController()
    expect(await locks.request('a', { signal }, async () => 'granted')).toBe('granted')
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('aborted right after the request: the callback is not called, the next is not blocked', async () => {
    const { locks } = newSite()
    const controller = new AbortController()
    const first = locks.request('a', { signal: controller.signal }, neverCalled)
    const next = locks.request('a', () => 'resolved')
    controller.abort()
    await rejectsWithDom(first, 'AbortError')
    expect(await next).toBe('resolved')
  })

  it('aborted at any moment before the callback is called: it is not called', async () => {
    const { locks } = newSite()
    for (let steps = 0; steps < 30; steps++) {
      const controller = new AbortController()
      let isCalled = false
      const request = locks.request('a', { signal: controller.signal }, () => {
        isCalled = true
      })
      for (let step = 0; step < steps; step++) await null
      controller.abort()
      const wasCalled = isCalled
      const outcome = await request.then(
        () => 'granted',
        () => 'aborted',
      )
      expect([outcome, isCalled]).toEqual(wasCalled ? ['granted', true] : ['aborted', false])
      expect(await locks.request('a', () => 'free')).toBe('free')
    }
  })

  it('aborted after the lock was granted, or released: has no effect', async () => {
    const { locks } = newSite()
    for (const isFirst of [true, false]) {
      const controller = new AbortController()
      const { work, released } = await hold(locks, 'a', { signal: controller.signal })
      if (isFirst) controller.abort()
      work.resolve('resolved ok')
      if (!isFirst) controller.abort()
      expect(await released).toBe('resolved ok')
    }
  })
})
