import assert from 'node:assert/strict'
import { HoldfastError } from '../../base/errors.js'
import type { MultiHold } from '../../primitives/multi-hold.js'
import type { Meal } from '../worker-primitives.js'
import { eventually, inTime, now, pass, rejectsWith, settled, throwsWith } from './checks.js'
import { FORGIVING_MS, IMPATIENT_MS, LONG_MS, RENEWED_MS, type Scene } from './scene.js'
import type { CaseSpec } from './suite.js'

const lease = LONG_MS

async function allEmpty(scene: Scene, ...names: string[]): Promise<void> {
  for (const name of names) await scene.empty(name)
}

/**
 * How many meals one has between two of another, mostly: the median, because one whose process is
 * held up for a moment, or starts a moment later, misses hundreds at once and starves all the same
 * not.
 */
function usuallyBetween(own: readonly Meal[], other: readonly Meal[]): number {
  const begun = own.map(({ from }) => from).sort((a, b) => a - b)
  const between = begun
    .slice(1)
    .map((end, index) => other.filter(({ from }) => from > (begun[index] ?? 0) && from < end).length)
    .sort((a, b) => a - b)
  return between[Math.floor(between.length / 2)] ?? 0
}

export const multiLockCases: readonly CaseSpec[] = [
  {
    title: 'all() holds every name, each once, with a fence for each',
    behaviours: [100],
    async run(scene) {
      const locks = scene.client()
      const hold = await locks.all(['b', 'a', 'b', 'c']).acquire({ lease })
      assert.deepEqual(hold.resources, ['a', 'b', 'c'])
      assert.equal(hold.isValid, true)
      for (const name of ['a', 'b', 'c']) {
        assert.equal((await scene.line(name))?.holders[0]?.fence, hold.fences.get(name))
        assert.equal(await scene.client().mutex(name).tryAcquire(), null)
      }
      assert.equal(await scene.client().all(['c', 'd']).tryAcquire(), null)
      assert.equal(await hold.release(), true)
      assert.deepEqual([await hold.release(), hold.isValid], [true, false])
      await allEmpty(scene, 'a', 'b', 'c', 'd')
    },
  },
  {
    title: 'all() that cannot be acquired at once or in time gives back what it had',
    behaviours: [100, 6],
    async run(scene) {
      await scene.client().mutex('b').acquire({ lease })
      const all = scene.client().all(['a', 'b', 'c'])
      assert.equal(await all.tryAcquire(), null)
      await rejectsWith('ACQUIRE_TIMEOUT', all.acquire({ wait: 0 }))
      for (const name of ['a', 'c']) await scene.empty(name)
      const startedAt = now()
      await rejectsWith('ACQUIRE_TIMEOUT', all.acquire({ wait: 150, lease }))
      assert.ok(now() - startedAt >= 150)
      await allEmpty(scene, 'a', 'c')
      // Its place in line is given up in the background.
      await scene.waiting('b', 0)
      assert.equal((await scene.line('b'))?.holders.length, 1)
    },
  },
  {
    title: 'one wait time is for all names together',
    behaviours: [100, 6],
    async run(scene) {
      const [first, second] = [
        await scene.client().mutex('a').acquire({ lease }),
        await scene.client().mutex('b').acquire({ lease }),
      ]
      const startedAt = now()
      const attempt = rejectsWith('ACQUIRE_TIMEOUT', scene.client().all(['a', 'b']).acquire({ wait: 6000 }))
      await scene.waiting('a', 1)
      await pass(4000)
      const releasedAt = now()
      await first.release()
      await attempt
      assert.ok(now() - startedAt >= 6000)
      // One that begins anew with the second name ends this much after it could begin; this one
      // long before, however busy the machine.
      assert.ok(now() - releasedAt < 6000, `waited for ${now() - startedAt} ms`)
      await second.release()
      await allEmpty(scene, 'a', 'b')
    },
  },
  {
    title: 'an abort while all() waits gives back what it had',
    behaviours: [100, 10],
    async run(scene) {
      await scene.client().mutex('b').acquire({ lease })
      const giveUp = new AbortController()
      const attempt = settled(scene.client().all(['a', 'b', 'c']).acquire({ lease, signal: giveUp.signal }))
      await scene.waiting('b', 1)
      assert.equal((await scene.line('a'))?.holders.length, 1, 'it waits out of order')
      assert.equal(await scene.line('c'), undefined, 'it waits while it holds what comes later')
      giveUp.abort('enough')
      const outcome = await attempt
      assert.ok('error' in outcome && outcome.error instanceof HoldfastError)
      assert.deepEqual([outcome.error.code, outcome.error.cause], ['ABORTED', 'enough'])
      await allEmpty(scene, 'a', 'c')
      const { locks, store } = scene.intercepted()
      await rejectsWith('ABORTED', locks.all(['a', 'b']).acquire({ signal: AbortSignal.abort() }))
      assert.equal(store.calls.length, 0)
    },
  },
  {
    title: 'a store that fails in the middle of all() leaves nothing held',
    behaviours: [100, 115],
    async run(scene) {
      for (const failing of ['a', 'b', 'c']) {
        const { locks, store } = scene.intercepted({ storeTimeout: IMPATIENT_MS })
        store.around = (call, go) => {
          const isIt = call.method === 'claim' && (call.about as { resource: string }).resource === failing
          return isIt ? Promise.reject(new TypeError('broken')) : go()
        }
        await rejectsWith('STORE_UNAVAILABLE', locks.all(['a', 'b', 'c']).acquire({ lease }))
        await allEmpty(scene, 'a', 'b', 'c')
      }
    },
  },
  {
    title: 'claims of all() whose replies are lost count once',
    behaviours: [100, 31],
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: FORGIVING_MS })
      const lost = new Set<string>()
      store.around = async (call, go) => {
        const reply = await go()
        if (call.method !== 'claim') return reply
        const { resource } = call.about as { resource: string }
        if (lost.has(resource)) return reply
        lost.add(resource)
        return new Promise<never>(() => {})
      }
      const hold = await inTime('all', locks.all(['a', 'b']).acquire({ lease }))
      await hold.release()
      await allEmpty(scene, 'a', 'b')
    },
  },
  {
    title: 'overlapping sets in opposite orders do not deadlock',
    behaviours: [101],
    async run(scene) {
      const clients = [scene.client(), scene.client(), scene.client()]
      const sets = [
        ['a', 'b', 'c'],
        ['c', 'b', 'a'],
        ['b', 'd'],
        ['d', 'a'],
        ['c', 'a'],
        ['d', 'c', 'b'],
      ]
      const inside = new Map<string, number>()
      const task = async (names: string[], index: number): Promise<void> => {
        for (let time = 0; time < 8; time++)
          await clients[(index + time) % 3]?.all(names).run(
            async () => {
              for (const name of names) {
                inside.set(name, (inside.get(name) ?? 0) + 1)
                assert.equal(inside.get(name), 1)
              }
              await pass(1)
              for (const name of names) inside.set(name, 0)
            },
            { lease },
          )
      }
      await inTime('all tasks', Promise.all(sets.map(task)), 60_000)
      await allEmpty(scene, 'a', 'b', 'c', 'd')
    },
  },
  {
    title: 'names that the flow or the owner holds already are entered again',
    behaviours: [100, 67],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      await locks.mutex('b').run(async (single) => {
        await locks.all(['b', 'c']).run(async (hold) => {
          assert.equal(hold.fences.get('b'), single.fence)
          assert.equal(await scene.client().mutex('c').tryAcquire(), null)
          // The store may tell of the refused try at any moment, and be asked about it.
          const calls = (): number => store.count('claim') + store.count('release')
          const before = calls()
          await locks.all(['b', 'c']).run((again) => assert.deepEqual(again.fences, hold.fences))
          await locks.mutex('c').run((again) => assert.equal(again.fence, hold.fences.get('c')))
          assert.equal(calls(), before)
        })
        await scene.empty('c')
        assert.equal(single.isValid, true)
      })
      const one = await locks.mutex('b').acquire({ owner: 'alice', lease })
      const two = await locks.all(['b', 'c']).acquire({ owner: 'alice', lease })
      assert.equal(two.fences.get('b'), one.fence)
      await one.release()
      assert.equal(two.isValid, true)
      await two.release()
      await allEmpty(scene, 'b', 'c')
    },
  },
  {
    title: 'a name that sorts before one that is held is refused before anything is sent',
    behaviours: [101, 14],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      await locks.all(['b', 'd']).run(async () => {
        const calls = store.calls.length
        for (const names of [['a'], ['c'], ['a', 'b', 'd'], ['c', 'e'], ['b', 'c', 'd']]) {
          const error = await rejectsWith('INVALID_ARGUMENT', locks.all(names).acquire())
          assert.match(error.message, /sorts before 'd'/)
        }
        assert.equal(store.calls.length, calls)
        await locks.all(['b', 'd', 'e']).run(async () => {
          await rejectsWith('INVALID_ARGUMENT', locks.all(['d', 'da']).tryAcquire())
        })
        await locks.all(['e', 'f']).run(() => {})
      })
      await locks.mutex('b').run(async () => {
        await rejectsWith('INVALID_ARGUMENT', locks.all(['a', 'b']).acquire())
        await locks.all(['a', 'c']).run(() => {})
      })
      await locks.mutex('b').acquire({ owner: 'alice' })
      await rejectsWith('INVALID_ARGUMENT', locks.all(['a', 'b']).acquire({ owner: 'alice' }))
      throwsWith('INVALID_ARGUMENT', () => locks.all([]))
      throwsWith('INVALID_ARGUMENT', () => locks.all('ab'))
      throwsWith('INVALID_ARGUMENT', () => locks.all(['a', '']))
      throwsWith('INVALID_ARGUMENT', () => locks.all(undefined as unknown as string[]))
    },
  },
  {
    title: 'nested all() of parallel tasks take turns without a deadlock',
    behaviours: [101, 69],
    async run(scene) {
      const locks = scene.client()
      let inside = 0
      await locks.all(['a', 'b']).run(async () => {
        const nested = [['a', 'b'], ['b'], ['a', 'b', 'c'], ['b', 'c'], ['a']].map((names) =>
          locks.all(names).run(async () => {
            if (names.includes('b')) assert.equal(++inside, 1)
            await pass(3)
            if (names.includes('b')) inside--
          }),
        )
        await inTime('the nested ones', Promise.all(nested))
      })
      await allEmpty(scene, 'a', 'b', 'c')
    },
  },
  {
    title: 'a release that fails keeps none of the others, and is told',
    behaviours: [102],
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: FORGIVING_MS })
      const hold = await locks.all(['a', 'b', 'c']).acquire({ lease })
      store.around = (call, go) =>
        call.method === 'release' && call.about === 'b' ? Promise.reject(new TypeError('broken')) : go()
      const error = await rejectsWith('STORE_UNAVAILABLE', hold.release())
      assert.match(error.message, /broken/)
      for (const name of ['a', 'c']) await scene.empty(name)
      assert.equal((await scene.line('b'))?.holders.length, 1)
      await rejectsWith('STORE_UNAVAILABLE', hold.release())
    },
  },
  {
    title: 'the loss of one aborts the whole, and run rejects with HOLD_LOST',
    behaviours: [100, 42],
    async run(scene) {
      const locks = scene.client()
      const work = async (hold: MultiHold): Promise<void> => {
        const { signal } = hold
        assert.equal(signal.aborted, false)
        await scene.client().breakHold('b')
        await eventually('the loss', () => signal.aborted)
        assert.ok(signal.reason instanceof HoldfastError && signal.reason.resource === 'b')
        assert.deepEqual([hold.isValid, hold.remainingMs], [false, 0])
        await rejectsWith('HOLD_LOST', hold.extend('1s'))
      }
      const run = locks.all(['a', 'b', 'c']).run(work, { lease: RENEWED_MS })
      assert.equal((await rejectsWith('HOLD_LOST', run)).resource, 'b')
      await allEmpty(scene, 'a', 'b', 'c')
      const hold = await locks.all(['a', 'b']).acquire({ lease })
      await scene.client().breakHold('a')
      await eventually('the loss', () => !hold.isValid)
      assert.equal(await hold.release(), false)
      await allEmpty(scene, 'a', 'b')
    },
  },
  {
    title: 'the holds of all() are renewed together, and extended together',
    behaviours: [35, 39, 100],
    async run(scene) {
      await using hold = await scene.client().all(['a', 'b', 'c']).acquire({ lease: 5000 })
      const until = now() + 6000
      await eventually('more than a lease', () => now() > until || !hold.isValid)
      assert.equal(hold.isValid, true)
      const calledAt = now()
      await hold.extend(scene.extensionMs)
      assert.ok(hold.remainingMs >= scene.extensionMs - (now() - calledAt) - 1)
    },
  },
  {
    title: 'close during all() sends it away with CLOSED, and nothing stays held',
    behaviours: [100, 116],
    async run(scene) {
      const holder = await scene.client().mutex('b').acquire({ lease })
      const locks = scene.client()
      const attempt = rejectsWith('CLOSED', locks.all(['a', 'b']).acquire({ lease }))
      await scene.waiting('b', 1)
      await locks.close()
      await attempt
      await holder.release()
      await allEmpty(scene, 'a', 'b')
    },
  },
  {
    title: 'all segments of a striped lock together keep everybody out, and one keeps out its own keys',
    behaviours: [100, 3],
    async run(scene) {
      const [mine, others] = [scene.client().striped('stock', 8), scene.client().striped('stock', 8)]
      const key = 'user:7'
      const same = Array.from({ length: 100 }, (_, index) => `user:${index}`).filter(
        (other) => other !== key && mine.indexOf(other) === mine.indexOf(key),
      )
      const different = mine.indexOf('user:1') === mine.indexOf(key) ? 'user:2' : 'user:1'
      const hold = await mine.for(key).acquire({ lease })
      for (const other of [key, ...same]) assert.equal(await others.for(other).tryAcquire(), null)
      assert.equal(await others.at(mine.indexOf(key)).tryAcquire(), null)
      assert.equal(await others.all().tryAcquire(), null)
      assert.equal(await others.forKeys([different, key]).tryAcquire(), null)
      await (await others.for(different).acquire({ wait: 0 })).release()
      await hold.release()
      const all = await others.all().acquire({ lease })
      for (let index = 0; index < 8; index++) assert.equal(await mine.at(index).tryAcquire(), null)
      await all.release()
      const both = await mine.forKeys([key, different, key]).acquire({ lease })
      assert.equal(both.resources.length, mine.indexOf(key) === mine.indexOf(different) ? 1 : 2)
    },
  },
  {
    title: 'kill -9 in the middle of all(): the others go on after the lease',
    behaviours: [100, 18],
    processes: true,
    async run(scene) {
      // Long enough that no hold is lost while its process is held up for a while: that would be a
      // complaint.
      const alive = { presence: 2 * RENEWED_MS }
      const [victim, survivor] = await scene.workers(2, alive)
      assert.ok(victim && survivor)
      await victim.call('dine', ['a', 'b', 'c'], { lease: 2 * RENEWED_MS })
      await survivor.call('dine', ['c', 'b'], { lease })
      await eventually('both are at it', async () => (await victim.call('meals')).length > 3)
      await victim.kill()
      const before = (await survivor.call('meals')).length
      await eventually('the other goes on', async () => (await survivor.call('meals')).length > before + 5)
      await inTime('a newcomer', scene.client().all(['a', 'b', 'c']).acquire({ lease }))
    },
  },
  {
    title: 'dining philosophers on 4 processes: no deadlock, and nobody starves',
    behaviours: [101],
    processes: true,
    alone: true,
    async run(scene) {
      const workers = await scene.workers(4)
      const forks = [0, 1, 2, 3, 4].map((number) => `fork ${number}`)
      for (let seat = 0; seat < 5; seat++) {
        const names = [forks[seat] ?? '', forks[(seat + 1) % 5] ?? '']
        await workers[seat % 4]?.call('dine', names, { lease: '20s' })
      }
      const meals = async () => (await Promise.all(workers.map((worker) => worker.call('meals')))).flat()
      const bySeat = (all: readonly Meal[]): Meal[][] =>
        forks.map((fork) => all.filter(({ names }) => names[0] === fork))
      await eventually(
        'everybody has eaten 40 times',
        async () => bySeat(await meals()).every((own) => own.length >= 40),
        120_000,
      )
      const all = await meals()
      // By the order of arrival a neighbour gets at each fork at most once before us; far more
      // would be starving slowly. Those that share no fork with us do not wait for us.
      const seats = bySeat(all)
      for (const [seat, own] of seats.entries())
        for (const neighbour of [(seat + 1) % 5, (seat + 4) % 5]) {
          const other = seats[neighbour] ?? assert.fail()
          const usual = usuallyBetween(own, other)
          assert.ok(usual <= 10, `${usual} meals of ${other[0]?.names} between two of ${own[0]?.names}`)
        }
      for (const meal of all)
        for (const other of all) {
          const isShared = meal !== other && meal.names.some((name) => other.names.includes(name))
          const isApart = other.until <= meal.from || meal.until <= other.from
          assert.ok(!isShared || isApart, 'two ate with the same fork')
        }
    },
  },
]
