import { expect } from 'vitest'
import { deferred } from '../../../src/base/deferred.js'
import { hold, isAvailable, onEachStore } from '../site.js'

onEachStore('exclusive mode', (newSite, it) => {
  it('lock requests are granted in order', async () => {
    const { locks } = newSite()
    const granted: number[] = []
    await Promise.all([1, 2, 3].map((n) => locks.request('a', () => granted.push(n))))
    expect(granted).toEqual([1, 2, 3])
  })

  it('requests for distinct resources can be granted', async () => {
    const { locks } = newSite()
    const granted: number[] = []
    let inner: Promise<unknown> | undefined
    await locks.request('a', async () => {
      // The first has to wait until this callback is over; the second need not.
      inner = Promise.all([
        locks.request('a', () => granted.push(1)),
        locks.request('b', () => granted.push(2)),
      ])
    })
    await inner
    expect(granted).toEqual([2, 1])
  })
})

onEachStore('shared mode', (newSite, it) => {
  it('lock requests are granted in order', async () => {
    const { locks } = newSite()
    const granted: number[] = []
    const names = ['a', 'b', 'c', 'a', 'b', 'c']
    await Promise.all(names.map((name, n) => locks.request(name, { mode: 'shared' }, () => granted.push(n))))
    expect(granted).toEqual([0, 1, 2, 3, 4, 5])
  })

  it('shared locks are not exclusive', async () => {
    const { locks } = newSite()
    const inner = () => locks.request('a', { mode: 'shared' }, () => 'both')
    expect(await locks.request('a', { mode: 'shared' }, inner)).toBe('both')
  })
})

onEachStore('mixed modes', (newSite, it) => {
  it('lock requests are granted in order', async () => {
    const { locks } = newSite()
    const granted: string[] = []
    const unblocked = deferred<void>()
    for (const n of [1, 2, 3])
      void locks.request('a', { mode: 'shared' }, () => {
        granted.push(`a-shared-${n}`)
        return unblocked.promise
      })
    const exclusive = locks.request('a', (lock) => {
      granted.push('a-exclusive')
      return lock.mode
    })
    await locks.request('b', () => granted.push('b-exclusive'))
    const first = ['a-shared-1', 'a-shared-2', 'a-shared-3', 'b-exclusive']
    expect(granted).toEqual(first)
    unblocked.resolve()
    expect(await exclusive).toBe('exclusive')
    expect(granted).toEqual([...first, 'a-exclusive'])
  })

  it('an exclusive lock between shared locks', async () => {
    const { locks } = newSite()
    const heldModes = async () => (await locks.query()).held.map(({ mode }) => mode)
    const before = [1, 2, 3].map(() => hold(locks, 'a', { mode: 'shared' }))
    const exclusive = hold(locks, 'a')
    const after = [1, 2, 3].map(() => hold(locks, 'a', { mode: 'shared' }))

    expect(await heldModes()).toEqual(['shared', 'shared', 'shared'])
    for (const { work, released } of await Promise.all(before)) {
      work.resolve(null)
      await released
    }
    expect(await heldModes()).toEqual(['exclusive'])
    const { work, released } = await exclusive
    expect((await locks.query()).pending).toHaveLength(3)
    work.resolve(null)
    await released
    // All of them at once.
    expect(await heldModes()).toEqual(['shared', 'shared', 'shared'])
    for (const each of await Promise.all(after)) each.work.resolve(null)
  })
})

onEachStore('ifAvailable', (newSite, it) => {
  it('lock available', async () => {
    const { locks } = newSite()
    expect(await isAvailable(locks, 'a')).toBe(true)
  })

  it('lock not available: the callback gets null, and its outcome counts', async () => {
    const { locks } = newSite()
    const thrown = { name: 'test' }
    const fail = (lock: unknown) => {
      expect(lock).toBe(null)
      throw thrown
    }
    await locks.request('a', async () => {
      expect(await locks.request('a', { ifAvailable: true }, async (lock) => [lock, 123])).toEqual([
        null,
        123,
      ])
      await expect(locks.request('a', { ifAvailable: true }, fail)).rejects.toBe(thrown)
      await expect(locks.request('a', { ifAvailable: true }, async (lock) => fail(lock))).rejects.toBe(thrown)
    })
  })

  it('unrelated lock held', async () => {
    const { locks } = newSite()
    expect(await locks.request('a', () => isAvailable(locks, 'different'))).toBe(true)
  })

  it('shared and exclusive beside each other', async () => {
    const { locks } = newSite()
    const outcomes: boolean[] = []
    await locks.request('a', { mode: 'shared' }, async () => {
      outcomes.push(await isAvailable(locks, 'a', { mode: 'shared' }), await isAvailable(locks, 'a'))
    })
    await locks.request('a', async () => {
      outcomes.push(await isAvailable(locks, 'a', { mode: 'shared' }))
    })
    expect(outcomes).toEqual([true, false, false])
  })

  it('does not overtake those who wait', async () => {
    const { locks } = newSite()
    const reader = await hold(locks, 'a', { mode: 'shared' })
    const writer = hold(locks, 'a')
    expect(await isAvailable(locks, 'a', { mode: 'shared' })).toBe(false)
    reader.work.resolve(null)
    ;(await writer).work.resolve(null)
  })

  it('locks are available once the previous release is processed', async () => {
    const { locks } = newSite()
    await locks.request('a', async () => {
      await locks.request('b', async () => {})
      expect(await isAvailable(locks, 'b')).toBe(true)
    })
  })
})
