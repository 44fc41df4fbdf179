import assert from 'node:assert/strict'
import { eventually, inTime, pass, rejectsWith, Watched } from './checks.js'
import { FORGIVING_MS, LONG_MS, RENEWED_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

const lease = LONG_MS

export const resizeCases: readonly CaseSpec[] = [
  {
    title: 'resize to more gives the new permits to the waiters at once',
    behaviours: [93],
    async run(scene) {
      const pool = scene.client().semaphore('pool', 1)
      await pool.acquire({ lease })
      const waiters = [1, 2, 3].map(() => new Watched(scene.client().semaphore('pool', 1).acquire({ lease })))
      await scene.waiting('pool', 3)
      await scene.client().semaphore('pool', 1).resize(3)
      await eventually('two are let in', () => waiters.filter(({ isSettled }) => isSettled).length === 2)
      await pass(20)
      assert.equal(waiters.filter(({ isSettled }) => isSettled).length, 2)
      assert.deepEqual([await pool.available(), (await scene.line('pool'))?.capacity], [0, 3])
    },
  },
  {
    title: 'resize to fewer interrupts nobody, and takes effect as holders leave',
    behaviours: [93, 94],
    async run(scene) {
      const pool = scene.client().semaphore('pool', 4)
      const holds = [1, 2, 3, 4].map(() => pool.acquire({ lease: 2 * RENEWED_MS }))
      const [one, two, three, four] = await Promise.all(holds)
      await pool.resize(2)
      assert.equal(await pool.available(), 0)
      const next = new Watched(scene.client().semaphore('pool', 4).acquire({ lease }))
      await scene.waiting('pool', 1)
      // They are renewed meanwhile, although there are too many of them.
      await pass(RENEWED_MS)
      for (const hold of [one, two, three, four]) assert.equal(hold?.isValid, true)
      await one?.release()
      await two?.release()
      await pass(20)
      assert.equal(next.isSettled, false, 'three hold although there are two')
      await three?.release()
      await inTime('the waiter', next.promise)
    },
  },
  {
    title: 'a resize is remembered beyond the line, and for clients that declare either number',
    behaviours: [91, 93],
    async run(scene) {
      await scene.client().semaphore('pool', 2).resize(3)
      const old = scene.client().semaphore('pool', 2)
      assert.equal(await old.available(), 3)
      const holds = [await old.acquire(), await old.acquire()]
      holds.push(await scene.client().semaphore('pool', 3).acquire({ wait: 0 }))
      assert.equal(await old.tryAcquire(), null)
      await rejectsWith('CAPACITY_MISMATCH', scene.client().semaphore('pool', 5).tryAcquire())
      await rejectsWith('CAPACITY_MISMATCH', scene.client().mutex('pool').tryAcquire())
      for (const hold of holds) await hold.release()
      assert.ok(await scene.client().semaphore('pool', 3).tryAcquire({ permits: 3, lease }))
      assert.equal(await old.tryAcquire(), null)
    },
  },
  {
    title: 'a waiter that wants more than there is after a resize is told, and bars nobody',
    behaviours: [91, 93],
    async run(scene) {
      const pool = scene.client().semaphore('pool', 4)
      const holder = await pool.acquire({ lease })
      const large = scene.client().semaphore('pool', 4).acquire({ permits: 4, lease })
      large.catch(() => {})
      await scene.waiting('pool', 1)
      const small = scene.client().semaphore('pool', 4).acquire({ lease })
      await scene.waiting('pool', 2)
      await pool.resize(2)
      await rejectsWith('CAPACITY_MISMATCH', large)
      await inTime('the small one behind', small)
      await rejectsWith('CAPACITY_MISMATCH', pool.acquire({ permits: 3 }))
      await holder.release()
      await rejectsWith('CAPACITY_MISMATCH', pool.tryAcquire({ permits: 3 }))
    },
  },
  {
    title: 'a waiter that wants too much after a resize is told also when its push is lost',
    behaviours: [93, 78],
    async run(scene) {
      await scene.client().semaphore('pool', 4).acquire({ lease })
      const { locks, store } = scene.intercepted()
      store.onPush = () => {}
      const large = locks.semaphore('pool', 4).acquire({ permits: 4, lease: RENEWED_MS })
      large.catch(() => {})
      await scene.waiting('pool', 1)
      await scene.client().semaphore('pool', 4).resize(3)
      await rejectsWith('CAPACITY_MISMATCH', large)
    },
  },
  {
    title: 'a resize back to what everybody declares is forgotten with the line',
    behaviours: [91, 93],
    async run(scene) {
      const pool = scene.client().semaphore('pool', 2)
      await pool.resize(4)
      await pool.resize(2)
      await rejectsWith('INVALID_ARGUMENT', pool.acquire({ permits: 3 }))
      const both = await pool.acquire({ permits: 2, lease })
      assert.equal(await pool.tryAcquire(), null)
      await both.release()
      assert.ok(await scene.client().semaphore('pool', 7).tryAcquire())
    },
  },
  {
    title: 'a resize whose reply is lost is repeated, and counts once',
    behaviours: [93],
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: FORGIVING_MS })
      store.around = async (call, go) => {
        const reply = await go()
        const isFirst = call.method === 'resize' && store.count('resize') === 1
        return isFirst ? new Promise<never>(() => {}) : reply
      }
      await inTime('the resize', locks.semaphore('pool', 2).resize(5))
      assert.equal(await scene.client().semaphore('pool', 2).available(), 5)
    },
  },
]
