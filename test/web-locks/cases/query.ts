import { expect } from 'vitest'
import { hold, onEachStore } from '../site.js'

onEachStore('query', (newSite, it) => {
  it('returns a dictionary with empty arrays when no locks are held', async () => {
    expect(await newSite().locks.query()).toEqual({ held: [], pending: [] })
  })

  it('returns dictionaries with the expected properties', async () => {
    const { locks } = newSite()
    const held = await hold(locks, 'a')
    const waiting = locks.request('a', { mode: 'shared' }, () => {})
    const state = await locks.query()
    const clientId = state.held[0]?.clientId
    expect(clientId).toMatch(/^[\w-]{8,}$/)
    expect(state).toEqual({
      held: [{ name: 'a', mode: 'exclusive', clientId }],
      pending: [{ name: 'a', mode: 'shared', clientId }],
    })
    held.work.resolve(null)
    await waiting
  })

  it('reports held locks one by one, shared ones as often as they are held', async () => {
    const { locks } = newSite()
    await locks.request('a', () =>
      locks.request('b', { mode: 'shared' }, () =>
        locks.request('b', { mode: 'shared' }, async () => {
          const { held } = await locks.query()
          // Names come in whatever order the store has them.
          expect(held.map(({ name, mode }) => [name, mode]).sort()).toEqual([
            ['a', 'exclusive'],
            ['b', 'shared'],
            ['b', 'shared'],
          ])
          expect(new Set(held.map(({ clientId }) => clientId)).size).toBe(1)
        }),
      ),
    )
  })

  it('sees every request that was made before it, and no release that was not', async () => {
    const { locks } = newSite()
    for (let round = 0; round < 20; round++) {
      const first = hold(locks, 'a')
      const others = [1, 2, 3].map(() => locks.request('a', () => {}))
      const state = await locks.query()
      expect([state.held.length, state.pending.length]).toEqual([1, 3])
      ;(await first).work.resolve(null)
      await Promise.all(others)
      expect(await locks.query()).toEqual({ held: [], pending: [] })
    }
  })

  it('reports different ids for locks of different clients', async () => {
    const site = newSite()
    const shared = { mode: 'shared' } as const
    const held = [await hold(site.locks, 'a', shared), await hold(site.another().locks, 'a', shared)]
    const clients = (await site.locks.query()).held.map(({ clientId }) => clientId)
    expect(new Set(clients).size).toBe(2)
    for (const { work } of held) work.resolve(null)
  })

  it('can observe a deadlock', async () => {
    const site = newSite()
    const here = site.locks
    const there = site.another().locks
    const held = [await hold(there, 'a'), await hold(here, 'b')]
    const waiting = [there.request('b', () => {}), here.request('a', () => {})]
    await there.query()
    const state = await here.query()
    const clientOf = (list: typeof state.held, wanted: string) =>
      list.filter(({ name }) => name === wanted).map(({ clientId }) => clientId)
    expect(clientOf(state.held, 'a')).toEqual(clientOf(state.pending, 'b'))
    expect(clientOf(state.held, 'b')).toEqual(clientOf(state.pending, 'a'))
    expect(clientOf(state.held, 'a')).not.toEqual(clientOf(state.held, 'b'))
    for (const { work } of held) work.resolve(null)
    await Promise.all(waiting)
  })

  it('requests appear in the order made', async () => {
    const site = newSite()
    const others = [site.another(), site.another(), site.another()]
    const ids: string[] = []
    for (const { locks } of others)
      ids.push(await locks.request('id', async () => (await locks.query()).held[0]?.clientId ?? ''))
    for (const order of [
      [0, 1, 2],
      [2, 0, 1],
    ]) {
      const { work } = await hold(site.locks, 'a')
      const waiting: Promise<unknown>[] = []
      for (const index of order) {
        const locks = others[index]?.locks
        waiting.push(locks?.request('a', () => {}) ?? Promise.reject(new Error('no such client')))
        // Each is in line before the next one asks.
        await locks?.query()
      }
      const { pending } = await site.locks.query()
      expect(pending.map(({ clientId }) => clientId)).toEqual(order.map((index) => ids[index]))
      work.resolve(null)
      await Promise.all(waiting)
    }
  })

  it('shows mutexes and read-write locks, which are the same locks, but no semaphore', async () => {
    const { client, locks } = newSite()
    await using _mutex = await client.mutex('mutex').acquire()
    await using _reader = await client.readWrite('rw').read.acquire()
    await using _permit = await client.semaphore('gpu', 4).acquire()
    const { held } = await locks.query()
    expect(held.map(({ name, mode }) => [name, mode]).sort()).toEqual([
      ['mutex', 'exclusive'],
      ['rw', 'shared'],
    ])
  })
})
