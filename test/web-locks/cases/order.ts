import { isDeepStrictEqual } from 'node:util'
import { expect } from 'vitest'
import { deferred } from '../../../src/base/deferred.js'
import { inTime } from '../../../src/testing/conformance/checks.js'
import type { LockManager } from '../../../src/web-locks/index.js'
import { onEachStore, type Site } from '../site.js'

/** A store that is in order most of the time shows it only in many rounds: HOLDFAST_ORDER_ROUNDS=200. */
const ROUNDS = Number(process.env['HOLDFAST_ORDER_ROUNDS'] ?? 2)

const SHARED = { mode: 'shared' } as const

/** Runs a case as the first thing that a fresh client does in a fresh space, again and again. */
async function inRounds<T>(
  newSite: () => Site,
  round: (site: Site) => Promise<T>,
  expected: T,
): Promise<void> {
  const wrong: T[] = []
  for (let done = 0; done < ROUNDS; done++) {
    const site = newSite()
    const outcome = await inTime(`round ${done}, after ${wrong.length} wrong ones`, round(site))
    if (!isDeepStrictEqual(outcome, expected)) wrong.push(outcome)
    await site.client.close()
  }
  expect(wrong.slice(0, 3), `${wrong.length} of ${ROUNDS} rounds are wrong`).toEqual([])
}

/** Requests in one tick, `r` for shared and `w` for exclusive ones; in which order they were called back. */
async function grantsOf(locks: LockManager, modes: string, nameOf: (n: number) => string): Promise<string[]> {
  const granted: string[] = []
  const requests = [...modes].map((mode, n) =>
    locks.request(nameOf(n), mode === 'r' ? SHARED : {}, () => {
      granted.push(`${mode}${n}`)
    }),
  )
  await Promise.all(requests)
  return granted
}

const inOrder = (modes: string): string[] => [...modes].map((mode, n) => `${mode}${n}`)

onEachStore('requests of one tick, by a fresh client in a fresh space', (newSite, it) => {
  for (const modes of ['wwwwww', 'rrrrrrwrrrrr', 'wrwrwr', 'rrw'])
    it(`are granted in order: ${modes}`, () =>
      inRounds(newSite, ({ locks }) => grantsOf(locks, modes, () => 'a'), inOrder(modes)))

  it('for different names are granted in the order made', () =>
    inRounds(newSite, ({ locks }) => grantsOf(locks, 'wwwwww', (n) => `name-${n}`), inOrder('wwwwww')))

  it('for names that come again are granted in the order made', () =>
    inRounds(newSite, ({ locks }) => grantsOf(locks, 'rrrrrr', (n) => `name-${n % 3}`), inOrder('rrrrrr')))

  it('with ifAvailable do not overtake an exclusive one that waits', () =>
    inRounds(
      newSite,
      async ({ locks }) => {
        const reader = deferred<void>()
        const all = [
          locks.request('a', SHARED, () => reader.promise),
          locks.request('a', () => {}),
          locks
            .request('a', { ...SHARED, ifAvailable: true }, (lock) => lock !== null)
            .finally(() => reader.resolve()),
        ]
        return (await Promise.all(all))[2]
      },
      false as unknown,
    ))

  it('with steal take the lock, whether or not somebody has it', () =>
    inRounds(
      newSite,
      async ({ locks }) => {
        const free = locks.request('b', { steal: true }, () => 'free')
        const robbed = locks.request('a', () => new Promise(() => {})).catch(() => 'robbed')
        const thief = locks.request('a', { steal: true }, () => 'stolen')
        return (await Promise.all([free, robbed, thief])) as unknown[]
      },
      ['free', 'robbed', 'stolen'],
    ))

  it('that are aborted at once are not in the state', () =>
    inRounds(
      newSite,
      async ({ locks }) => {
        const holder = deferred<void>()
        const giveUp = new AbortController()
        const held = locks.request('a', () => holder.promise)
        const aborted = [1, 2, 3].map(() =>
          locks.request('a', { signal: giveUp.signal }, () => {}).catch(() => 'aborted'),
        )
        const last = locks.request('a', () => 'last')
        giveUp.abort()
        const { held: holds, pending } = await locks.query()
        holder.resolve()
        await held
        return [holds.length, pending.length, ...(await Promise.all([...aborted, last]))] as unknown[]
      },
      [1, 1, 'aborted', 'aborted', 'aborted', 'last'],
    ))

  it('appear in the state in the order made', () =>
    inRounds(
      newSite,
      async ({ locks }) => {
        const holder = deferred<void>()
        const all = [locks.request('a', () => holder.promise)]
        for (const mode of ['r', 'w', 'r', 'r', 'w'])
          all.push(locks.request('a', mode === 'r' ? SHARED : {}, async () => {}))
        const { pending } = await locks.query()
        holder.resolve()
        await Promise.all(all)
        return pending.map(({ mode }) => mode)
      },
      ['shared', 'exclusive', 'shared', 'shared', 'exclusive'],
    ))
})

onEachStore('requests of two fresh clients in a fresh space', (newSite, it) => {
  it('are granted in the order in which they have come', () =>
    inRounds(
      newSite,
      async (site) => {
        const other = site.another()
        const holder = deferred<void>()
        const held = site.locks.request('a', () => holder.promise)
        await site.locks.query()
        const granted: number[] = []
        const all: Promise<unknown>[] = [held]
        for (let n = 0; n < 4; n++) {
          const { locks } = n % 2 === 0 ? other : site
          all.push(locks.request('a', () => granted.push(n)))
          // It is in line before the next one asks.
          await locks.query()
        }
        holder.resolve()
        await Promise.all(all)
        await other.client.close()
        return granted
      },
      [0, 1, 2, 3],
    ))

  it('with steal take the lock from the other one', () =>
    inRounds(
      newSite,
      async (site) => {
        const isHeld = deferred<void>()
        const robbed = site.locks.request('a', () => {
          isHeld.resolve()
          return new Promise(() => {})
        })
        const told = robbed.catch((error: Error) => error.name)
        await isHeld.promise
        const other = site.another()
        const stolen = await other.locks.request('a', { steal: true }, () => 'stolen')
        const outcome = [stolen, await told] as unknown[]
        await other.client.close()
        return outcome
      },
      ['stolen', 'AbortError'],
    ))
})
