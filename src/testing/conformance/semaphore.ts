import assert from 'node:assert/strict'
import type { Hold } from '../../primitives/hold.js'
import type { Belief } from '../worker.js'
import { CountingEnv, eventually, inTime, now, pass, rejectsWith, throwsWith, Watched } from './checks.js'
import { claimOf, FORGIVING_MS, LONG_MS, RENEWED_MS, SHORT_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

const lease = LONG_MS

/** The most permits that were believed to be held at one moment. */
function mostAtOnce(beliefs: readonly Belief[]): number {
  const moments = beliefs.map(({ from }) => from)
  return Math.max(
    ...moments.map((moment) =>
      beliefs
        .filter(({ from, until }) => from <= moment && moment < (until ?? Infinity))
        .reduce((sum, { permits }) => sum + permits, 0),
    ),
  )
}

export const semaphoreCases: readonly CaseSpec[] = [
  {
    title: 'at most so many permits are out at once, over several clients',
    behaviours: [88],
    async run(scene) {
      const clients = [scene.client(), scene.client(), scene.client()]
      let [inside, most] = [0, 0]
      const task = async (index: number): Promise<void> => {
        const pool = clients[index % 3]?.semaphore('pool', 3) ?? assert.fail()
        for (let time = 0; time < 6; time++) {
          const permits = 1 + ((index + time) % 3)
          await pool.run(
            async () => {
              inside += permits
              most = Math.max(most, inside)
              assert.ok(inside <= 3, `${inside} permits are out`)
              await pass(1)
              inside -= permits
            },
            { permits },
          )
        }
      }
      await inTime('all tasks', Promise.all([0, 1, 2, 3, 4, 5, 6, 7, 8].map(task)), 60_000)
      assert.equal(most, 3)
      await scene.empty('pool')
    },
  },
  {
    title: 'a weighted claim gets all its permits or none, and small ones do not pass it',
    behaviours: [90],
    async run(scene) {
      const pool = scene.client().semaphore('pool', 4)
      const first = await pool.acquire({ permits: 3, lease })
      assert.equal(await pool.tryAcquire({ permits: 2 }), null)
      assert.equal((await scene.line('pool'))?.holders.length, 1)
      const large = new Watched(scene.client().semaphore('pool', 4).acquire({ permits: 4, lease }))
      await scene.waiting('pool', 1)
      assert.equal(await pool.tryAcquire(), null, 'a small claim overtook a large one')
      const small = new Watched(pool.acquire({ lease }))
      await scene.waiting('pool', 2)
      await first.release()
      const hold = await inTime('the large claim', large.promise)
      assert.equal(hold.permits, 4)
      await pass(20)
      assert.equal(small.isSettled, false)
      await hold.release()
      await inTime('the small claim', small.promise)
    },
  },
  {
    title: 'permits are given back in chunks, and each chunk lets the next ones in',
    behaviours: [90],
    async run(scene) {
      const pool = scene.client().semaphore('pool', 4)
      const hold = await pool.acquire({ permits: 4, lease })
      const two = scene.client().semaphore('pool', 4).acquire({ permits: 2, lease })
      await scene.waiting('pool', 1)
      await rejectsWith('INVALID_ARGUMENT', hold.shrink(5))
      await rejectsWith('INVALID_ARGUMENT', hold.shrink(0))
      await rejectsWith('INVALID_ARGUMENT', hold.downgrade())
      await hold.shrink(3)
      assert.deepEqual([hold.permits, await pool.available()], [3, 1])
      await hold.shrink(2)
      await inTime('the waiter', two)
      assert.deepEqual([hold.permits, await pool.available(), hold.isValid], [2, 0, true])
      await rejectsWith('INVALID_ARGUMENT', hold.shrink(3))
      await hold.shrink(1)
      assert.equal(await pool.available(), 1)
      assert.equal(await hold.release(), true)
      assert.equal(await pool.available(), 2)
      await rejectsWith('NOT_HELD', hold.shrink(1))
    },
  },
  {
    title: 'a chunk whose reply is lost is given back once',
    behaviours: [90],
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: FORGIVING_MS })
      const hold = await locks.semaphore('pool', 5).acquire({ permits: 5, lease })
      store.around = async (call, go) => {
        const reply = await go()
        const isFirst = call.method === 'pulse' && store.count('pulse') === 1
        return isFirst ? new Promise<never>(() => {}) : reply
      }
      await inTime('the chunk', hold.shrink(2))
      assert.equal(await scene.client().semaphore('pool', 5).available(), 3)
      assert.equal((await scene.line('pool'))?.holders[0]?.permits, 2)
    },
  },
  {
    title: 'more permits than there are, and wrong numbers, are refused before anything is sent',
    behaviours: [90, 14],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const pool = locks.semaphore('pool', 3)
      for (const permits of [4, 0, -1, 1.5, Number.NaN, '2' as unknown as number]) {
        await rejectsWith('INVALID_ARGUMENT', pool.acquire({ permits }))
        await rejectsWith('INVALID_ARGUMENT', pool.tryAcquire({ permits }))
        await rejectsWith(
          'INVALID_ARGUMENT',
          pool.run(() => {}, { permits }),
        )
      }
      for (const capacity of [0, -1, 1.5, Number.NaN, 2 ** 30, '3' as unknown as number]) {
        throwsWith('INVALID_ARGUMENT', () => locks.semaphore('pool', capacity))
        await rejectsWith('INVALID_ARGUMENT', pool.resize(capacity))
      }
      assert.equal(store.calls.length, 0)
    },
  },
  {
    title: 'a different capacity is refused while anybody is in the line, and a mutex of the same name too',
    behaviours: [91],
    async run(scene) {
      const hold = await scene.client().semaphore('pool', 3).acquire({ lease })
      for (const capacity of [1, 2, 4]) {
        const other = scene.client().semaphore('pool', capacity)
        await rejectsWith('CAPACITY_MISMATCH', other.acquire())
        await rejectsWith('CAPACITY_MISMATCH', other.tryAcquire())
      }
      await rejectsWith('CAPACITY_MISMATCH', scene.client().mutex('pool').acquire())
      await rejectsWith('CAPACITY_MISMATCH', scene.client().readWrite('pool').read.tryAcquire())
      assert.equal((await scene.line('pool'))?.waiters.length, 0)
      await hold.release()
      const mutex = await scene.client().mutex('pool').acquire({ lease })
      await rejectsWith('CAPACITY_MISMATCH', scene.client().semaphore('pool', 3).acquire())
      await mutex.release()
    },
  },
  {
    title: 'permits of a holder that fell silent come back after its lease, and not before',
    behaviours: [89],
    async run(scene) {
      const silent = scene.raw()
      const claimedAt = now()
      const request = claimOf('pool', 'silent:1', { permits: 2, capacity: 3, leaseMs: SHORT_MS })
      assert.equal((await silent.claim(request)).status, 'granted')
      const pool = scene.client().semaphore('pool', 3)
      const one = await pool.acquire({ lease })
      const two = new Watched(pool.acquire({ permits: 2, lease }))
      await inTime('the permits', two.promise)
      assert.ok(two.settledAt - claimedAt >= SHORT_MS)
      assert.equal(one.isValid, true)
      assert.equal(await pool.available(), 0)
    },
  },
  {
    title: 'the release of a hold that lapsed gives nothing back twice',
    behaviours: [92],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const pool = scene.client().semaphore('pool', 2)
      const old = await locks.semaphore('pool', 2).acquire({ lease: SHORT_MS })
      store.cut('pulse')
      const both = await inTime('both permits', pool.acquire({ permits: 2, lease }))
      await rejectsWith('HOLD_LOST', old.shrink(1))
      assert.equal(await old.release(), false)
      await eventually('its release was sent', () => store.count('release') > 0)
      await pass(30)
      assert.equal(await pool.available(), 0)
      assert.equal(await pool.tryAcquire(), null)
      const stranger = scene.raw()
      assert.equal(await stranger.release('pool', 'stranger:1'), false)
      await both.release()
      assert.equal(await pool.available(), 2)
    },
  },
  {
    title: 'not re-entrant: each acquisition takes permits of its own, also inside run and of one owner',
    behaviours: [17, 96],
    async run(scene) {
      const pool = scene.client().semaphore('pool', 2)
      await pool.run(async (outer) => {
        await pool.run(async (inner) => {
          assert.notEqual(inner.fence, outer.fence)
          assert.equal(await pool.tryAcquire(), null)
        })
      })
      const holds = [await pool.acquire({ owner: 'alice' }), await pool.acquire({ owner: 'alice' })]
      assert.notEqual(holds[0]?.fence, holds[1]?.fence)
      assert.equal(await pool.tryAcquire({ owner: 'alice' }), null)
      await holds[0]?.release()
      assert.equal(holds[1]?.isValid, true)
    },
  },
  {
    title: 'available and holders tell the truth; who takes all permits is alone',
    behaviours: [94, 119],
    async run(scene) {
      const pool = scene.client().semaphore('pool', 5)
      assert.deepEqual([await pool.available(), await pool.holders()], [5, []])
      const one = await pool.acquire({ permits: 2, lease, label: 'two' })
      await scene.client().semaphore('pool', 5).acquire({ lease, label: 'one' })
      const seen = await pool.holders()
      assert.deepEqual(
        seen.map(({ label, permits }) => [label, permits]),
        [
          ['two', 2],
          ['one', 1],
        ],
      )
      assert.equal(seen[0]?.fence, one.fence)
      assert.equal(await pool.available(), 2)
      assert.equal((await scene.line('pool'))?.capacity, 5)
      const rest = await pool.tryAcquire({ permits: await pool.available(), lease })
      assert.equal(rest?.permits, 2)
      assert.equal(await pool.available(), 0)
    },
  },
  {
    title: 'breakHold takes one permit holder by its fence, and the next in line gets its permits',
    behaviours: [26, 92],
    async run(scene) {
      const locks = scene.client()
      const pool = locks.semaphore('pool', 2)
      const take = (): Promise<Hold> => pool.acquire({ lease: RENEWED_MS })
      const [one, two] = [await take(), await take()]
      const next = scene.client().semaphore('pool', 2).acquire({ lease })
      await scene.waiting('pool', 1)
      assert.equal((await scene.client().breakHold('pool', { fence: one.fence })).length, 1)
      await inTime('the next one', next)
      await eventually('the loss', () => one.signal.aborted)
      assert.equal(two.isValid, true)
      assert.equal(await one.release(), false)
      await pass(20)
      assert.equal(await pool.available(), 0)
    },
  },
  {
    title: 'clients whose wall clocks differ by hours share a semaphore like any others',
    behaviours: [95],
    async run(scene) {
      const [early, late] = [new CountingEnv(), new CountingEnv()]
      early.wallOffsetMs = -2 * 3_600_000
      late.wallOffsetMs = 2 * 3_600_000
      const pools = [early, late].map((env) => scene.client({ env }).semaphore('pool', 2))
      const holds = await Promise.all(pools.map((pool) => pool.acquire({ lease: 5000 })))
      for (const pool of pools) assert.equal(await pool.tryAcquire(), null)
      const until = now() + 6000
      await eventually('some renewals', () => now() > until || holds.some((hold) => !hold.isValid))
      for (const hold of holds) assert.equal(hold.isValid, true)
      assert.equal(await pools[0]?.available(), 0)
    },
  },
  {
    title: 'a weighted semaphore and one of single permits are the same one',
    behaviours: [96],
    async run(scene) {
      const [one, two] = [scene.client().semaphore('pool', 3), scene.client().semaphore('pool', 3)]
      const single = await one.acquire({ lease })
      assert.equal(await two.tryAcquire({ permits: 3 }), null)
      const double = await two.tryAcquire({ permits: 2, lease })
      assert.ok(double)
      assert.equal(await one.tryAcquire(), null)
      await single.release()
      assert.ok(await two.tryAcquire())
    },
  },
  {
    title: 'at most so many permits are out at once, over 4 processes',
    behaviours: [88],
    processes: true,
    alone: true,
    async run(scene) {
      const workers = await scene.workers(4)
      const kind = { kind: 'semaphore', capacity: 5 } as const
      for (const worker of workers)
        for (const permits of [1, 2, 3, 5, 1])
          await worker.call('queue', 'pool', 12, { lease, permits }, 1, kind)
      const all = async () => (await Promise.all(workers.map((worker) => worker.call('beliefs')))).flat()
      const haveAllHadIt = async (): Promise<boolean> => {
        const beliefs = await all()
        return beliefs.length === 240 && beliefs.every(({ until }) => until !== null)
      }
      await eventually('everybody has had its permits', haveAllHadIt, 120_000)
      assert.ok(mostAtOnce(await all()) <= 5, `${mostAtOnce(await all())} permits were out`)
      // The last release may still be on its way.
      await scene.empty('pool')
    },
  },
  {
    title: 'kill -9 of a holder of permits: they come back after its lease, and those of others stay',
    behaviours: [89, 88],
    processes: true,
    async run(scene) {
      const [victim, survivor] = await scene.workers(2)
      assert.ok(victim && survivor)
      const kind = { kind: 'semaphore', capacity: 4 } as const
      const claimedAfter = now()
      await victim.call('acquire', 'pool', { lease: RENEWED_MS, permits: 3 }, kind)
      const kept = await survivor.call('acquire', 'pool', { lease: RENEWED_MS }, kind)
      const pool = scene.client().semaphore('pool', 4)
      const next = new Watched(pool.acquire({ permits: 2, lease }))
      await scene.waiting('pool', 1)
      await victim.kill()
      await inTime('the permits of the dead', next.promise)
      assert.ok(next.settledAt - claimedAfter >= RENEWED_MS)
      assert.equal(await pool.available(), 1)
      assert.equal((await survivor.call('look', kept.hold)).isValid, true)
    },
  },
]
