import { AsyncLocalStorage } from 'node:async_hooks'
import { expect } from 'vitest'
import type { LockManager } from '../../../src/web-locks/index.js'
import { hold, isAvailable, neverCalled, onEachStore, rejectsWithDom } from '../site.js'

/** What JavaScript can pass and TypeScript would not. */
function requestWith(locks: LockManager, ...args: unknown[]): Promise<unknown> {
  return Reflect.apply(locks.request, locks, args)
}

onEachStore('request: its arguments', (newSite, it) => {
  it('requires a name and a callback', async () => {
    const { locks } = newSite()
    await expect(requestWith(locks)).rejects.toThrow(TypeError)
    await expect(requestWith(locks, 'a')).rejects.toThrow(TypeError)
  })

  it('takes any value as a name, by its text', async () => {
    const { locks } = newSite()
    const nameOf = (name: unknown) => requestWith(locks, name, (lock: { name: string }) => lock.name)
    expect(await nameOf(undefined)).toBe('undefined')
    expect(await nameOf(42)).toBe('42')
    expect(await nameOf({ toString: () => 'object' })).toBe('object')
    await expect(nameOf(Symbol('a'))).rejects.toThrow(TypeError)
  })

  it('mode must be "shared" or "exclusive"', async () => {
    const { locks } = newSite()
    for (const mode of ['foo', null, '', 'Exclusive', Symbol('exclusive')])
      await expect(requestWith(locks, 'a', { mode }, neverCalled)).rejects.toThrow(TypeError)
    expect(await locks.request('a', { mode: 'exclusive' }, (lock) => lock?.mode)).toBe('exclusive')
    expect(await locks.request('a', { mode: 'shared' }, (lock) => lock?.mode)).toBe('shared')
    expect(await locks.request('a', { mode: undefined }, (lock) => lock?.mode)).toBe('exclusive')
    expect(await requestWith(locks, 'a', { mode: { toString: () => 'shared' } }, () => 'by its text')).toBe(
      'by its text',
    )
  })

  it('options must be an object, or nothing', async () => {
    const { locks } = newSite()
    for (const options of [undefined, null, {}, []])
      expect(await requestWith(locks, 'a', options, () => 'granted')).toBe('granted')
    for (const options of [1, 'shared', true, Symbol('shared')])
      await expect(requestWith(locks, 'a', options, neverCalled)).rejects.toThrow(TypeError)
    const thrown = new Error('from a getter')
    const hostile = Object.defineProperty({}, 'mode', {
      get() {
        throw thrown
      },
    })
    await expect(requestWith(locks, 'a', hostile, neverCalled)).rejects.toBe(thrown)
  })

  it('callback must be a function', async () => {
    const { locks } = newSite()
    for (const callback of [undefined, null, 123, 'abc', [], {}, new Promise(() => {})]) {
      await expect(requestWith(locks, 'a', callback)).rejects.toThrow(TypeError)
      await expect(requestWith(locks, 'a', {}, callback)).rejects.toThrow(TypeError)
    }
    // Three arguments: the second is options then, even if it is a function.
    await expect(requestWith(locks, 'a', neverCalled, undefined)).rejects.toThrow(TypeError)
  })

  it('refuses steal with ifAvailable, steal with shared, signal with either', async () => {
    const { locks } = newSite()
    const { signal } = new AbortController()
    const contradictions = [
      { steal: true, ifAvailable: true },
      { steal: true, mode: 'shared' as const },
      { steal: true, signal },
      { ifAvailable: true, signal },
    ]
    for (const options of contradictions)
      await rejectsWithDom(locks.request('a', options, neverCalled), 'NotSupportedError')
    await rejectsWithDom(
      locks.request('a', { steal: true, signal: AbortSignal.abort() }, neverCalled),
      'NotSupportedError',
    )
  })
})

onEachStore('request: its outcome', (newSite, it) => {
  it('calls back later, never at once, with one argument and no this', async () => {
    const { locks } = newSite()
    let isLater = false
    const look = function (this: unknown, ...args: unknown[]) {
      return [isLater, this, args.length]
    }
    const granted = locks.request('a', look)
    const refused = locks.request('a', { ifAvailable: true }, look)
    isLater = true
    expect(await granted).toEqual([true, undefined, 1])
    expect(await refused).toEqual([true, undefined, 1])
  })

  it("the callback's result is promisified if not async", async () => {
    const { locks } = newSite()
    const promise = locks.request('a', () => 123)
    expect(Promise.resolve(promise)).toBe(promise)
    expect(await promise).toBe(123)
  })

  it('the returned promise resolves after the lock is released', async () => {
    const { locks } = newSite()
    const { work, released } = await hold(locks, 'a')
    const order: string[] = []
    const all = [released.then(() => order.push('returned')), work.promise.then(() => order.push('holding'))]
    work.resolve('done')
    await Promise.all(all)
    expect(order).toEqual(['holding', 'returned'])
    expect(await released).toBe('done')
    expect(await isAvailable(locks, 'a')).toBe(true)
  })

  it('rejects with exactly what the callback throws, at once or later', async () => {
    const { locks } = newSite()
    const thrown = { name: 'test' }
    const throwNow = () => {
      throw thrown
    }
    await expect(locks.request('a', throwNow)).rejects.toBe(thrown)
    await expect(locks.request('a', async () => throwNow())).rejects.toBe(thrown)
    expect(await isAvailable(locks, 'a')).toBe(true)
  })

  it('does not invoke then() of a thrown thenable', async () => {
    const { locks } = newSite()
    let isInvoked = false
    // biome-ignore lint/suspicious/noThenProperty: this is about a thenable
    const thenable = { then: () => (isInvoked = true) }
    const reason = await locks
      .request('a', async () => {
        throw thenable
      })
      .then(neverCalled, (error) => [error])
    expect(reason[0]).toBe(thenable)
    expect(isInvoked).toBe(false)
  })

  it("the lock is held until the callback's promise resolves or rejects", async () => {
    const { locks } = newSite()
    for (const end of ['resolve', 'reject'] as const) {
      const { work, released } = await hold(locks, 'a')
      const order: string[] = []
      const second = locks.request('a', () => order.push('2nd lock granted'))
      // It stands in line behind the first: whoever asks now is turned away.
      expect(await isAvailable(locks, 'a')).toBe(false)
      order.push('1st lock released')
      work[end](new Error('expected'))
      await Promise.allSettled([released, second])
      expect(order).toEqual(['1st lock released', '2nd lock granted'])
    }
  })

  it('a held lock prevents the same client from acquiring it', async () => {
    const { locks } = newSite()
    expect(await locks.request('a', () => isAvailable(locks, 'a'))).toBe(false)
  })

  it('calls back in the async context of its caller', async () => {
    const { locks } = newSite()
    const storage = new AsyncLocalStorage<string>()
    const waiting = await hold(locks, 'a')
    const seen = storage.run('mine', () => locks.request('a', () => storage.getStore()))
    waiting.work.resolve(null)
    expect(await seen).toBe('mine')
  })
})
