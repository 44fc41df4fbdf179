import assert from 'node:assert/strict'
import { HoldfastError } from '../../base/errors.js'
import { eventually, inTime, now, pass, rejectsWith, settled, Watched } from './checks.js'
import { FORGIVING_MS, IMPATIENT_MS, LONG_MS, RENEWED_MS, SHORT_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

/** A busy machine may take longer than a short time-out to open its first connection. */
async function recovers(acquire: () => Promise<unknown>): Promise<void> {
  await eventually('the hold', async () => {
    const outcome = await settled(acquire())
    return 'value' in outcome && outcome.value !== null
  })
}

export const outageCases: readonly CaseSpec[] = [
  {
    title: 'a store that fails at the acquisition gives a clear error within the time-out, and recovers',
    behaviours: [115],
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: IMPATIENT_MS })
      store.cut()
      await rejectsWith('STORE_UNAVAILABLE', scene.lock('door', locks).acquire())
      await rejectsWith('STORE_UNAVAILABLE', scene.lock('door', locks).tryAcquire())
      store.heal()
      await recovers(() => scene.lock('door', locks).tryAcquire())
    },
  },
  {
    title:
      'a store that does not answer at the acquisition gives a clear error within the time-out, and recovers',
    behaviours: [115],
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: IMPATIENT_MS })
      store.hang()
      const error = await rejectsWith('STORE_UNAVAILABLE', scene.lock('door', locks).acquire())
      assert.equal(error.store, store.name)
      await rejectsWith('STORE_UNAVAILABLE', scene.lock('door', locks).tryAcquire())
      store.heal()
      await recovers(() => scene.lock('door', locks).acquire())
    },
  },
  {
    title: 'no call hangs while the store does not answer',
    behaviours: [115],
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: IMPATIENT_MS })
      const hold = await scene.lock('door', locks).acquire({ lease: LONG_MS })
      store.hang()
      const calls = [
        scene.lock('door', locks).isLocked(),
        locks.inspect().next(),
        locks.breakHold('door'),
        locks.breakHold('door', { fence: hold.fence }),
        hold.extend('1s'),
        hold.export(),
      ]
      await Promise.all(calls.map((call) => rejectsWith('STORE_UNAVAILABLE', call)))
      await rejectsWith('STORE_UNAVAILABLE', hold.release())
    },
  },
  {
    title: 'an error that is none of ours is told as STORE_UNAVAILABLE, never as "taken"',
    behaviours: [115, 5],
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: IMPATIENT_MS })
      const door = scene.lock('door', locks)
      const cause = new TypeError('the driver is confused')
      store.around = () => Promise.reject(cause)
      const calls = [
        () => door.tryAcquire(),
        () => door.acquire(),
        () => door.isLocked(),
        () => locks.breakHold('door'),
      ]
      for (const call of calls) {
        const error = await rejectsWith('STORE_UNAVAILABLE', call())
        assert.equal(error.cause, cause)
        assert.match(error.message, /the driver is confused/)
      }
    },
  },
  {
    title: 'the wait ends in time also when the store does not answer, and that is not read as "taken"',
    behaviours: [6, 115],
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: FORGIVING_MS })
      store.hang()
      const startedAt = now()
      const error = await rejectsWith('STORE_UNAVAILABLE', scene.lock('door', locks).acquire({ wait: 120 }))
      assert.ok(now() - startedAt >= 120)
      assert.ok(error.cause instanceof Error)
      assert.doesNotMatch(error.message, /storeTimeout/)
      assert.equal(error.resource, 'door')
      const all = await rejectsWith('STORE_UNAVAILABLE', locks.all(['a', 'b']).acquire({ wait: 120 }))
      assert.doesNotMatch(all.message, /storeTimeout/)
      store.heal()
    },
  },
  {
    title:
      'a wait in line that ends while the store does not answer is STORE_UNAVAILABLE, also for neighbours',
    behaviours: [6, 115],
    async run(scene) {
      await scene.lock('door').acquire({ lease: LONG_MS })
      const { locks, store } = scene.intercepted({ storeTimeout: FORGIVING_MS })
      const waits = [1, 2].map(() => scene.lock('door', locks).acquire({ wait: 3000, lease: LONG_MS }))
      const isThere = async (): Promise<boolean> => ((await scene.line('door'))?.waiters.length ?? 0) > 0
      // On a slow machine they may be over before.
      await Promise.race([eventually('the line', isThere), Promise.all(waits)])
      store.hang()
      for (const wait of waits) {
        const error = await rejectsWith('STORE_UNAVAILABLE', wait)
        assert.ok(error.cause instanceof Error)
        assert.doesNotMatch(error.message, /storeTimeout/)
      }
      store.heal()
    },
  },
  {
    title: 'a wait for a latch, a barrier or an election that ends while the store does not answer says so',
    behaviours: [97, 98, 99, 115],
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: FORGIVING_MS })
      store.hang()
      await Promise.all([
        rejectsWith('STORE_UNAVAILABLE', locks.latch('ready', 1).wait({ wait: 120 })),
        scene.countsPermits &&
          rejectsWith('STORE_UNAVAILABLE', locks.barrier('phase', 2).meet({ wait: 120 })),
        rejectsWith('STORE_UNAVAILABLE', locks.election('boss').campaign({ wait: 120 })),
      ])
      store.heal()
    },
  },
  {
    title: 'a wait that ends while the store answers is ACQUIRE_TIMEOUT, however long it stood in line',
    behaviours: [6],
    async run(scene) {
      const holder = await scene.lock('door').acquire({ lease: LONG_MS })
      const { locks } = scene.intercepted({ storeTimeout: LONG_MS })
      const waits = [1, 2500, 2500].map((wait) => scene.lock('door', locks).acquire({ wait, lease: LONG_MS }))
      await Promise.all([
        ...waits.map((wait) => rejectsWith('ACQUIRE_TIMEOUT', wait)),
        rejectsWith('ACQUIRE_TIMEOUT', locks.latch('ready', 1).wait({ wait: 2500 })),
      ])
      await holder.release()
    },
  },
  {
    title: 'a store that does not answer is told within the time-out, by its whole time',
    behaviours: [115],
    async run(scene) {
      await scene.lock('door').acquire({ lease: LONG_MS })
      const { locks, store } = scene.intercepted({ storeTimeout: IMPATIENT_MS })
      const waiter = scene.lock('door', locks).acquire({ lease: SHORT_MS })
      waiter.catch(() => {})
      await scene.waiting('door', 1)
      store.hang()
      const told = new RegExp(`did not answer within ${IMPATIENT_MS / 1000} s; .* or raise storeTimeout`)
      const calls = [waiter, scene.lock('gate', locks).acquire(), scene.lock('gate', locks).tryAcquire()]
      const all = [...calls, locks.latch('ready', 1).count()]
      const errors = await Promise.all(all.map((call) => rejectsWith('STORE_UNAVAILABLE', call)))
      for (const { message } of errors) assert.match(message, told)
    },
  },
  {
    title: 'a claim whose reply is lost is repeated, and counts once',
    behaviours: [115, 11],
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: FORGIVING_MS })
      store.around = async (call, go) => {
        const reply = await go()
        const isFirst = call.method === 'claim' && store.count('claim') === 1
        return isFirst ? new Promise<never>(() => {}) : reply
      }
      const hold = await inTime('the repeated claim', scene.lock('door', locks).acquire({ lease: LONG_MS }))
      assert.equal((await scene.line('door'))?.holders.length, 1)
      assert.equal((await scene.line('door'))?.waiters.length, 0)
      await hold.release()
      await scene.empty('door')
    },
  },
  {
    title: 'a waiter survives an outage that is shorter than the time-out, also if it lost its place',
    behaviours: [49, 54, 115],
    async run(scene) {
      const holder = await scene.lock('door').acquire({ lease: LONG_MS })
      const { locks, store } = scene.intercepted()
      // A hold of a shorter lease may be over before it is looked at.
      const waiter = new Watched(scene.lock('door', locks).acquire({ lease: RENEWED_MS }))
      await scene.waiting('door', 1)
      store.cut()
      await scene.waiting('door', 0)
      assert.equal(waiter.isSettled, false)
      store.heal()
      await scene.waiting('door', 1)
      await holder.release()
      assert.equal((await inTime('the waiter', waiter.promise)).isValid, true)
    },
  },
  {
    title: 'a waiter is told when the store stays silent for longer than the time-out',
    behaviours: [115],
    async run(scene) {
      await scene.lock('door').acquire({ lease: LONG_MS })
      const { locks, store } = scene.intercepted({ storeTimeout: IMPATIENT_MS })
      const waiter = scene.lock('door', locks).acquire({ lease: SHORT_MS })
      waiter.catch(() => {})
      await scene.waiting('door', 1)
      store.cut()
      await rejectsWith('STORE_UNAVAILABLE', waiter)
    },
  },
  {
    title: 'a final error of the store is passed on at once, with its code and message',
    behaviours: [115],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const final = new HoldfastError('UNSUPPORTED', 'Not on this store')
      store.around = () => Promise.reject(final)
      const { message } = await rejectsWith('UNSUPPORTED', scene.lock('door', locks).acquire())
      assert.equal(message, final.message)
      await eventually('nothing more is asked', () => store.count('claim') === 1)
      await pass(50)
      assert.equal(store.count('claim'), 1)
    },
  },
]
