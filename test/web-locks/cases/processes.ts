import { expect } from 'vitest'
import { Agent, type Requested } from '../agent.js'
import { hold, isAvailable, onEachSharedStore } from '../site.js'

onEachSharedStore('processes, as windows, frames and workers are in a browser', (newSite, it) => {
  it('share in shared mode, exclude each other in exclusive mode, and see each other in the state', async () => {
    const site = newSite()
    const agent = await Agent.start(site)
    const reader = agent.request('a', { mode: 'shared' })
    expect(await reader.called).toMatchObject({ mode: 'shared' })
    expect(await isAvailable(site.locks, 'a', { mode: 'shared' })).toBe(true)
    expect(await isAvailable(site.locks, 'a')).toBe(false)
    const writer = hold(site.locks, 'a')
    const { held, pending } = await site.locks.query()
    expect(held.map(({ mode }) => mode)).toEqual(['shared'])
    expect(pending.map(({ mode }) => mode)).toEqual(['exclusive'])
    expect(held[0]?.clientId).not.toBe(pending[0]?.clientId)
    expect(await agent.request('a', { mode: 'shared', ifAvailable: true }).called).toBe(null)
    reader.settle()
    ;(await writer).work.resolve('mine')
    expect(await (await writer).released).toBe('mine')
  })

  it('are served in the order in which they have come', async () => {
    const site = newSite()
    const agents = await Promise.all([Agent.start(site), Agent.start(site)])
    const { work } = await hold(site.locks, 'a')
    const requests: Requested[] = []
    for (let n = 0; n < 4; n++) {
      const agent = agents[n % 2] as Agent
      requests.push(agent.request('a', n === 1 ? { mode: 'shared' } : {}))
      // It is in line before the next one asks.
      await agent.query()
    }
    work.resolve(null)
    const fences: number[] = []
    for (const request of requests) {
      fences.push((await request.called)?.fence ?? 0)
      request.settle()
      expect(await request.ended).toBe('done')
    }
    expect(fences).toEqual([...fences].sort((a, b) => a - b))
  })

  it('keep the order of their own first requests', async () => {
    const site = newSite()
    const agents = await Promise.all([Agent.start(site), Agent.start(site)])
    const bursts = agents.map((agent) => [1, 2, 3, 4, 5].map(() => agent.request('a')))
    for (const request of bursts.flat()) request.settle()
    for (const burst of bursts) {
      const fences = (await Promise.all(burst.map(({ called }) => called))).map((lock) => lock?.fence ?? 0)
      expect(fences).toEqual([...fences].sort((a, b) => a - b))
    }
  })

  it('steal from each other', async () => {
    const site = newSite()
    const agent = await Agent.start(site)
    const robbed = agent.request('a')
    await robbed.called
    expect(await site.locks.request('a', { steal: true }, () => 'mine')).toBe('mine')
    expect(await robbed.ended).toMatch(/^AbortError: The lock 'a' was stolen or lost/)
    const held = await hold(site.locks, 'a')
    const thief = agent.request('a', { steal: true })
    expect(await thief.called).toMatchObject({ mode: 'exclusive' })
    await expect(held.released).rejects.toThrow(/stolen or lost/)
    thief.settle()
    expect(await thief.ended).toBe('done')
  })

  it('that abort a request let the next one in, and do not show it any more', async () => {
    const site = newSite()
    const agent = await Agent.start(site)
    const held = await hold(site.locks, 'a')
    const aborted = agent.request('a', { isAbortable: true })
    await agent.query()
    const next = site.locks.request('a', () => 'next')
    await site.locks.query()
    aborted.abort()
    expect(await aborted.ended).toMatch(/^AbortError/)
    expect((await agent.query()).pending).toHaveLength(1)
    held.work.resolve(null)
    expect(await next).toBe('next')
  })
})
