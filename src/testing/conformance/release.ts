import assert from 'node:assert/strict'
import { deferred } from '../../base/deferred.js'
import { eventually, inTime, pass, rejectsWith, Watched } from './checks.js'
import { FORGIVING_MS, IMPATIENT_MS, LONG_MS, RENEWED_MS, SHORT_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

export const releaseCases: readonly CaseSpec[] = [
  {
    title: 'a release by the owner frees the lock, and nothing of it is left',
    behaviours: [21],
    async run(scene) {
      const hold = await scene.lock('door').acquire()
      assert.equal(await hold.release(), true)
      assert.equal(await (await scene.lock('door').tryAcquire())?.release(), true)
      await scene.empty('door')
      assert.equal(hold.isValid, false)
      assert.equal(hold.remainingMs, 0)
      assert.equal(hold.signal.aborted, false)
      await rejectsWith('NOT_HELD', hold.extend('1s'))
      await rejectsWith('NOT_HELD', hold.export())
    },
  },
  {
    title: 'a release by an id that does not hold disturbs nobody',
    behaviours: [22, 25],
    async run(scene) {
      const hold = await scene.lock('door').acquire({ lease: LONG_MS })
      const stranger = scene.raw()
      assert.equal(await stranger.release('door', 'stranger:1'), false)
      assert.equal(await stranger.release('never held', 'stranger:2'), false)
      assert.equal(
        (await stranger.claim(scene.claimOf('door', 'stranger:3', { mode: 'try' }))).status,
        'refused',
      )
      assert.equal(await stranger.release('door', 'stranger:3'), false)
      assert.equal((await scene.line('door'))?.holders[0]?.fence, hold.fence)
    },
  },
  {
    title: 'the release of a hold that lapsed gives false and does not touch the next holder',
    behaviours: [23, 22],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const old = await scene.lock('door', locks).acquire({ lease: SHORT_MS })
      store.cut('pulse')
      const next = await inTime('the next holder', scene.lock('door').acquire({ lease: LONG_MS }))
      assert.equal(await old.release(), false)
      // The withdrawal in the background goes through as well, by its own id.
      await eventually('the release was sent', () => store.count('release') > 0)
      await pass(30)
      assert.equal(next.isValid, true)
      assert.equal((await scene.line('door'))?.holders[0]?.fence, next.fence)
      assert.equal(await scene.lock('door').tryAcquire(), null)
    },
  },
  {
    title: 'releasing twice gives the same answer and never frees a later holder',
    behaviours: [24],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const hold = await scene.lock('door', locks).acquire()
      assert.deepEqual(await Promise.all([hold.release(), hold.release()]), [true, true])
      const later = await scene.lock('door').acquire({ lease: LONG_MS })
      assert.equal(await hold.release(), true)
      assert.equal(store.count('release'), 1)
      assert.equal((await scene.line('door'))?.holders[0]?.fence, later.fence)
    },
  },
  {
    title: 'await using releases exactly once',
    behaviours: [32],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      {
        await using hold = await scene.lock('door', locks).acquire()
        assert.equal(hold.isValid, true)
      }
      await scene.empty('door')
      const hold = await scene.lock('door', locks).acquire()
      await hold.release()
      await hold[Symbol.asyncDispose]()
      assert.equal(store.count('release'), 2)
    },
  },
  {
    title: 'a release whose reply is lost is repeated, and gives true',
    behaviours: [31],
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: FORGIVING_MS })
      const hold = await scene.lock('door', locks).acquire({ lease: LONG_MS })
      store.around = async (call, go) => {
        const reply = await go()
        const isFirst = call.method === 'release' && store.count('release') === 1
        return isFirst ? new Promise<never>(() => {}) : reply
      }
      assert.equal(await inTime('the release', hold.release()), true)
      assert.ok(store.count('release') >= 2)
      await scene.empty('door')
    },
  },
  {
    title: 'a repeated release does not touch who came in between',
    behaviours: [24, 31],
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: FORGIVING_MS })
      const hold = await scene.lock('door', locks).acquire({ lease: LONG_MS })
      const next = scene.lock('door').acquire({ lease: LONG_MS })
      await scene.waiting('door', 1)
      store.around = async (call, go) => {
        const reply = await go()
        const isFirst = call.method === 'release' && store.count('release') === 1
        return isFirst ? new Promise<never>(() => {}) : reply
      }
      assert.equal(await inTime('the release', hold.release()), true)
      assert.equal((await scene.line('door'))?.holders[0]?.fence, (await next).fence)
    },
  },
  {
    title: 'a release while the store is down fails in bounded time, and the lock ends with its lease',
    behaviours: [29],
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: IMPATIENT_MS })
      const hold = await scene.lock('door', locks).acquire({ lease: RENEWED_MS })
      store.cut()
      await rejectsWith('STORE_UNAVAILABLE', hold.release())
      assert.equal(hold.isValid, false)
      // The same answer again: a caller who asks twice is not told something else.
      await rejectsWith('STORE_UNAVAILABLE', hold.release())
      const next = await inTime('the lease of the unreleased hold', scene.lock('door').acquire())
      assert.ok(next.fence > hold.fence)
    },
  },
  {
    title: 'a release while a renewal is on its way is no loss, and brings nothing back',
    behaviours: [30],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const hold = await scene.lock('door', locks).acquire({ lease: 6000 })
      const { signal } = hold
      const replies = deferred<void>()
      store.around = async (call, go) => {
        if (call.method === 'pulse') await replies.promise
        return go()
      }
      await eventually('a renewal on its way', () => store.count('pulse') > 0)
      assert.equal(await hold.release(), true)
      const pulses = store.count('pulse')
      replies.resolve()
      await pass(SHORT_MS)
      assert.equal(signal.aborted, false)
      await scene.empty('door')
      assert.equal(store.count('pulse'), pulses)
    },
  },
  {
    title: 'run resolves only after its release was acknowledged',
    behaviours: [28],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const replies = deferred<void>()
      store.around = async (call, go) => {
        const reply = await go()
        if (call.method === 'release') await replies.promise
        return reply
      }
      const run = new Watched(scene.lock('door', locks).run(async () => 'done', { lease: LONG_MS }))
      await eventually('the release was sent', () => store.count('release') > 0)
      await pass(20)
      assert.equal(run.isSettled, false)
      replies.resolve()
      assert.equal(await run.promise, 'done')
    },
  },
]
