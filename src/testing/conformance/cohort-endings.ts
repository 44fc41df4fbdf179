import assert from 'node:assert/strict'
import { getEventListeners, setMaxListeners } from 'node:events'
import {
  assertIncreasing,
  CountingEnv,
  eventually,
  hasCode,
  inTime,
  now,
  pass,
  rejectsWith,
  settled,
  standStill,
  Watched,
} from './checks.js'
import { cohort } from './cohort-scene.js'
import { IMPATIENT_MS, LONG_MS, RENEWED_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

/**
 * What becomes of the waiters of a process when a hold is lost, a waiter gives up, or the client
 * closes.
 */
export const cohortEndingCases: readonly CaseSpec[] = [
  {
    title: 'what is lost is lost for its bearer, and its neighbours stand in line again',
    behaviours: [42, 66, 70],
    async run(scene) {
      const { locks } = cohort(scene)
      const first = await scene.lock('door', locks).acquire({ lease: LONG_MS })
      const second = scene.lock('door', locks).acquire({ lease: LONG_MS })
      await first.release()
      const bearer = await inTime('the second', second)
      const { signal } = bearer
      const third = scene.lock('door', locks).acquire({ lease: LONG_MS })
      const other = scene.lock('door').acquire({ lease: LONG_MS })
      await scene.waiting('door', 1)
      await scene.client().breakHold('door')
      const hold = await inTime('the other process', other)
      await eventually('the loss', () => signal.aborted)
      assert.equal(bearer.isValid, false)
      assert.equal(await bearer.release(), false)
      await scene.waiting('door', 1)
      await hold.release()
      const last = await inTime('the neighbour', third)
      assertIncreasing([first.fence, bearer.fence, hold.fence, last.fence])
      await last.release()
    },
  },
  {
    title: 'a hold that is not renewed in time ends, also where it was passed on',
    behaviours: [42, 44, 66],
    async run(scene) {
      const { locks, store } = cohort(scene)
      const first = await scene.lock('door', locks).acquire({ lease: RENEWED_MS })
      const second = scene.lock('door', locks).acquire({ lease: RENEWED_MS })
      await first.release()
      const bearer = await inTime('the second', second)
      const third = new Watched(scene.lock('door', locks).acquire({ lease: RENEWED_MS }))
      store.cut()
      await eventually('the loss', () => !bearer.isValid)
      assert.equal(third.isSettled, false, 'it was passed on although it was over')
      store.heal()
      const last = await inTime('the third', third.promise)
      assertIncreasing([first.fence, bearer.fence, last.fence])
      await last.release()
    },
  },
  {
    title: 'a process that stood still beyond the lease passes nothing on',
    behaviours: [42, 44, 66],
    alone: true,
    async run(scene) {
      const { locks, store } = cohort(scene)
      const first = await scene.lock('door', locks).acquire({ lease: RENEWED_MS })
      const next = scene.lock('door', locks).acquire({ lease: RENEWED_MS })
      standStill(RENEWED_MS)
      assert.equal(await first.release(), false)
      const hold = await inTime('the neighbour', next)
      assert.ok(hold.isValid && hold.fence > first.fence)
      assert.equal(store.count('claim'), 2)
      await hold.release()
    },
  },
  {
    title: 'a hold that is about to end is renewed before a neighbour gets it',
    behaviours: [44, 66],
    async run(scene) {
      // Otherwise it goes back to the store by then.
      if (!(await scene.tellsOfWaiters())) return
      const { locks, store } = cohort(scene)
      const leaseMs = 2 * RENEWED_MS
      const opening = await scene.lock('door', locks).acquire({ lease: leaseMs })
      const second = scene.lock('door', locks).acquire({ lease: leaseMs })
      await opening.release()
      // It has come with fences for many.
      const first = await inTime('the first neighbour', second)
      const half = first.remainingMs / 2
      const next = new Watched(scene.lock('door', locks).acquire({ lease: leaseMs }))
      // Before it can be lost: then the neighbour has asked anew when we notice.
      const claims = store.count('claim')
      store.cut('pulse')
      await eventually('half of the lease is over', () => first.remainingMs < half)
      const wasHeld = await first.release()
      await pass(20)
      // Where the store cannot tell whether others wait, the turn is over, and it is acquired anew.
      assert.ok(!next.isSettled || store.count('claim') > claims, 'it was passed on as it was')
      store.heal()
      const hold = await inTime('the neighbour', next.promise)
      // Where the machine stood still for too long, it was lost and is acquired anew.
      assert.ok(hold.fence > first.fence && (!wasHeld || hold.remainingMs > 0))
      await hold.release()
    },
  },
  {
    title: 'a release that fails is not passed on, and nobody is stranded',
    behaviours: [66],
    async run(scene) {
      const { locks, store } = cohort(scene, { storeTimeout: IMPATIENT_MS })
      const extended = await scene.lock('door', locks).acquire({ lease: RENEWED_MS })
      // So that it has to go back to the store.
      const extendedAfter = now()
      await extended.extend(RENEWED_MS)
      const next = new Watched(scene.lock('door', locks).acquire({ lease: RENEWED_MS }))
      store.hang('release')
      const released = settled(extended.release())
      assert.ok('error' in (await inTime('the release', released)))
      const hold = await inTime('the next one, when the lease is over', next.promise)
      assert.ok(next.settledAt >= extendedAfter + RENEWED_MS, 'before the lease was over')
      assert.ok(hold.fence > extended.fence)
      store.heal()
      await hold.release()
    },
  },
  {
    title: 'a neighbour that gives up delays no waiter, and the next one gets its place',
    behaviours: [13, 74, 76],
    async run(scene) {
      const { locks, store } = cohort(scene)
      const holder = await scene.lock('door').acquire({ lease: LONG_MS })
      const giveUp = new AbortController()
      const first = settled(scene.lock('door', locks).acquire({ lease: LONG_MS, signal: giveUp.signal }))
      await scene.waiting('door', 1)
      // Before its first answer it has no place to leave to others.
      await eventually('it knows its place', () => store.answered('claim') > 0)
      const second = scene.lock('door', locks).acquire({ lease: LONG_MS })
      const short = scene.lock('door', locks).acquire({ lease: LONG_MS, wait: 20 })
      await rejectsWith('ACQUIRE_TIMEOUT', short)
      const late = scene.lock('door').acquire({ lease: LONG_MS, label: 'late' })
      await scene.inLine('door', 'late')
      giveUp.abort()
      const outcome = await first
      hasCode('ABORTED', 'error' in outcome ? outcome.error : undefined)
      assert.equal(store.count('release'), 0, 'the place was given up')
      await holder.release()
      const hold = await inTime('the second, in the place of the first', second)
      await hold.release()
      await (await inTime('the late one', late)).release()
    },
  },
  {
    title: '200 neighbours that give up leave no entries, no listeners and no timers',
    behaviours: [13, 37],
    async run(scene) {
      const holder = await scene.lock('door').acquire({ lease: LONG_MS })
      const env = new CountingEnv()
      const { locks } = cohort(scene, { env })
      const before = env.activeTimers
      const giveUp = new AbortController()
      setMaxListeners(0, giveUp.signal)
      const options = { signal: giveUp.signal, lease: LONG_MS }
      const waiters = Array.from({ length: 200 }, (_, index) =>
        settled(scene.lock('door', locks).acquire(index % 2 === 0 ? options : { ...options, wait: '1h' })),
      )
      await scene.waiting('door', 1)
      giveUp.abort()
      for (const outcome of await Promise.all(waiters))
        hasCode('ABORTED', 'error' in outcome ? outcome.error : undefined)
      await scene.waiting('door', 0)
      assert.equal(getEventListeners(giveUp.signal, 'abort').length, 0)
      await eventually('the timers are over', () => env.activeTimers <= before + 1)
      await holder.release()
    },
  },
  {
    title: 'when the store falls silent, all neighbours are told, in time',
    behaviours: [74],
    async run(scene) {
      const { locks, store } = cohort(scene, { storeTimeout: IMPATIENT_MS })
      store.hang()
      const waiters = Array.from({ length: 20 }, () => scene.lock('door', locks).acquire({ lease: LONG_MS }))
      await inTime(
        'all of them',
        Promise.all(waiters.map((waiter) => rejectsWith('STORE_UNAVAILABLE', waiter))),
      )
      store.heal()
      await (await inTime('a hold', scene.lock('door', locks).acquire())).release()
    },
  },
  {
    title: 'close sends neighbours away and leaves nothing in line',
    behaviours: [116],
    async run(scene) {
      const { locks } = cohort(scene)
      await scene.lock('door', locks).acquire({ lease: LONG_MS })
      const waiters = Array.from({ length: 10 }, () =>
        rejectsWith('CLOSED', scene.lock('door', locks).acquire({ lease: LONG_MS })),
      )
      await locks.close({ drain: 0 })
      await Promise.all(waiters)
      await scene.empty('door')
    },
  },
]
