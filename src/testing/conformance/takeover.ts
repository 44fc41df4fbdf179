import assert from 'node:assert/strict'
import { HoldfastError } from '../../base/errors.js'
import { eventually, inTime, now, pass, rejectsWith } from './checks.js'
import { MINDS_OTHERS } from './guises.js'
import { LONG_MS, RENEWED_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

export const takeoverCases: readonly CaseSpec[] = [
  {
    title: 'breakHold takes the hold away, tells its holder, and the next in line gets it',
    behaviours: [26, 43],
    notAs: MINDS_OTHERS,
    async run(scene) {
      const hold = await scene.lock('door').acquire({ lease: RENEWED_MS, label: 'stuck' })
      const { signal } = hold
      const next = scene.lock('door').acquire({ lease: LONG_MS })
      await scene.waiting('door', 1)
      const revoked = await scene.client().breakHold('door')
      assert.deepEqual(
        revoked.map(({ fence, label, pid }) => ({ fence, label, pid })),
        [{ fence: hold.fence, label: 'stuck', pid: process.pid }],
      )
      await eventually('the previous holder is told', () => signal.aborted)
      assert.ok(signal.reason instanceof HoldfastError && signal.reason.code === 'HOLD_LOST')
      assert.equal(hold.isValid, false)
      const { fence } = await inTime('the next one', next)
      assert.ok(fence > hold.fence)
      assert.equal(await hold.release(), false)
      await pass(20)
      assert.equal((await scene.line('door'))?.holders[0]?.fence, fence)
    },
  },
  {
    title: 'breakHold with a fence breaks that hold and no other',
    behaviours: [26],
    async run(scene) {
      const operator = scene.client()
      const hold = await scene.lock('door').acquire({ lease: RENEWED_MS })
      assert.deepEqual(await operator.breakHold('door', { fence: hold.fence - 1 }), [])
      assert.deepEqual(await operator.breakHold('door', { fence: hold.fence + 1 }), [])
      assert.deepEqual(await operator.breakHold('attic'), [])
      assert.equal(hold.isValid, true)
      assert.equal((await operator.breakHold('door', { fence: hold.fence })).length, 1)
      await eventually('the loss', () => hold.signal.aborted)
      assert.deepEqual(await operator.breakHold('door', { fence: hold.fence }), [])
    },
  },
  {
    title: 'a passed hold is adopted with a new fence, and lost where it came from',
    behaviours: [55, 43],
    async run(scene) {
      const hold = await scene.lock('door').acquire({ lease: RENEWED_MS })
      const { signal } = hold
      const waiter = scene.lock('door').acquire({ lease: LONG_MS })
      await scene.waiting('door', 1)
      const passed = await hold.export()
      assert.equal(hold.isValid, true, 'it stays held until it is adopted')
      const adopted = await scene.client().adopt(passed, { label: 'heir' })
      assert.ok(adopted.fence > hold.fence)
      assert.equal(adopted.isValid, true)
      await eventually('the loss', () => signal.aborted)
      assert.equal(await hold.release(), false)
      const line = await scene.line('door')
      assert.deepEqual(
        line?.holders.map(({ fence, label }) => ({ fence, label })),
        [{ fence: adopted.fence, label: 'heir' }],
      )
      // The one who waited since before is still the next.
      await adopted.release()
      await inTime('the waiter', waiter)
    },
  },
  {
    title: 'a hold is adopted once, and not after it has ended',
    behaviours: [55],
    async run(scene) {
      const hold = await scene.lock('door').acquire()
      const passed = await hold.export()
      const adopted = await scene.client().adopt(passed)
      await rejectsWith('NOT_HELD', scene.client().adopt(passed))
      assert.equal(adopted.isValid, true)
      await adopted.release()
      await rejectsWith('NOT_HELD', scene.client().adopt(passed))
      const released = await scene.lock('door').acquire()
      const late = await released.export()
      await released.release()
      await rejectsWith('NOT_HELD', scene.client().adopt(late))
      await rejectsWith('INVALID_ARGUMENT', scene.client({ space: 'elsewhere' }).adopt(late))
    },
  },
  {
    title: 'an adopted hold is renewed like any other, with the lease and the cap it came with',
    behaviours: [55, 35],
    async run(scene) {
      const hold = await scene.lock('door').acquire({ lease: 5000, maxHold: '1h' })
      const adopted = await scene.client().adopt(await hold.export())
      assert.ok(adopted.remainingMs <= 5000)
      const until = now() + 6000
      await eventually('more than its lease', () => now() > until || !adopted.isValid)
      assert.equal(adopted.isValid, true)
      assert.equal(adopted.signal.aborted, false)
      // Not before: it makes the hold last up to its cap, without any renewal.
      await rejectsWith('INVALID_ARGUMENT', adopted.extend('2h'))
    },
  },
]
