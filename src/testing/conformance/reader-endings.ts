import assert from 'node:assert/strict'
import {
  assertIncreasing,
  eventually,
  inTime,
  pass,
  rejectsWith,
  settled,
  standStill,
  Watched,
} from './checks.js'
import { readers } from './reader-scene.js'
import { FORGIVING_MS, IMPATIENT_MS, LONG_MS, RENEWED_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

const lease = LONG_MS

/**
 * What becomes of readers that share a claim when it is lost, extended, exported, broken or closed.
 */
export const readerEndingCases: readonly CaseSpec[] = [
  {
    title: 'what readers share is lost for all of them, and the waiters stand in line again',
    behaviours: [42, 66, 70],
    async run(scene) {
      const { read, store } = readers(scene)
      const two = [await read.acquire({ lease }), await read.acquire({ lease })]
      const signals = two.map(({ signal }) => signal)
      const left = await read.acquire({ lease })
      const { signal } = left
      await left.release()
      store.hang('pulse')
      const late = read.acquire({ lease })
      await scene.client().breakHold('config')
      await eventually('the loss', () => signals.every(({ aborted }) => aborted))
      assert.ok(two.every(({ isValid }) => !isValid))
      assert.equal(signal.aborted, false, 'who has left has lost nothing')
      for (const hold of two) assert.equal(await hold.release(), false)
      store.heal()
      const hold = await inTime('the late one', late)
      assertIncreasing([...two, left, hold].map(({ fence }) => fence))
      await hold.release()
      await scene.empty('config')
    },
  },
  {
    title: 'nobody comes in beside readers whose time has run out',
    behaviours: [42, 44, 66],
    async run(scene) {
      const { read, store } = readers(scene, FORGIVING_MS)
      const two = [await read.acquire({ lease: RENEWED_MS }), await read.acquire({ lease: RENEWED_MS })]
      store.cut()
      await eventually('the loss', () => two.every(({ isValid }) => !isValid))
      const late = new Watched(settled(read.acquire({ lease: RENEWED_MS })))
      await pass(30)
      assert.equal(late.isSettled, false)
      store.heal()
      const outcome = await inTime('the late one', late.promise)
      assert.ok('value' in outcome && outcome.value.fence > Math.max(...two.map(({ fence }) => fence)))
    },
  },
  {
    title: 'an answer that comes when the time is over lets nobody in',
    behaviours: [42, 44, 66],
    // It stops the whole process.
    alone: true,
    async run(scene) {
      const { read, store } = readers(scene)
      const first = await read.acquire({ lease: RENEWED_MS })
      store.around = async (call, go) => {
        const reply = await go()
        // As if the process had been stopped: no timer has run since when the answer is looked at.
        if (call.method === 'pulse') standStill(RENEWED_MS)
        return reply
      }
      const late = read.acquire({ lease: RENEWED_MS })
      await eventually('the loss', () => !first.isValid)
      store.heal()
      const hold = await inTime('the late one', late)
      assert.ok(hold.isValid && hold.fence > first.fence)
      await hold.release()
    },
  },
  {
    title: 'a reader among neighbours cannot be exported; alone it can, and is alone from then on',
    behaviours: [55, 66],
    async run(scene) {
      const { read, store } = readers(scene)
      const [one, two] = [await read.acquire({ lease }), await read.acquire({ lease })]
      // One, unless the turn was over before the second came.
      const claims = (await scene.line('config'))?.holders.length ?? 0
      if (claims === 1) await rejectsWith('UNSUPPORTED', one.export())
      await two.release()
      const passed = await one.export()
      const beside = await inTime('one more reader', read.acquire({ lease }))
      assert.equal((await scene.line('config'))?.holders.length, 2)
      const adopted = await scene.client().adopt(passed)
      await eventually('the loss', () => !one.isValid)
      assert.deepEqual([beside.isValid, adopted.isValid, adopted.permits], [true, true, 1])
      assert.ok(adopted.fence > beside.fence)
      await adopted.release()
      await beside.release()
      assert.equal(store.count('claim'), claims + 1)
      await scene.empty('config')
    },
  },
  {
    title: 'a reader that is extended gets no further neighbours, and takes nothing from those it has',
    behaviours: [66],
    async run(scene) {
      const { read } = readers(scene)
      const [one, two] = [await read.acquire({ lease }), await read.acquire({ lease })]
      // One, unless the turn was over before the second came.
      const claims = (await scene.line('config'))?.holders.length ?? 0
      await one.extend(50)
      await one.downgrade()
      await two.extend(50)
      const third = await inTime('the third', read.acquire({ lease }))
      assert.equal((await scene.line('config'))?.holders.length, claims + 1)
      await one.release()
      assert.deepEqual([two.isValid, third.isValid], [true, true])
      await two.release()
      assert.equal(third.isValid, true)
      await third.release()
      await scene.empty('config')
    },
  },
  {
    title: 'a reader enters again beside its neighbours, and is refused as a writer at once',
    behaviours: [66, 83],
    async run(scene) {
      const { read, write } = readers(scene)
      const neighbour = await read.acquire({ lease })
      await read.run(
        async (hold) => {
          assert.ok(hold.fence > neighbour.fence)
          await read.run((again) => assert.equal(again.fence, hold.fence))
          await rejectsWith('UPGRADE_REFUSED', write.acquire({ lease }))
          await neighbour.release()
          assert.equal(hold.isValid, true)
          await read.run((again) => assert.equal(again.fence, hold.fence))
        },
        { lease },
      )
      await scene.empty('config')
    },
  },
  {
    title: 'when the store falls silent, new readers are told in time, and the holders are not disturbed',
    behaviours: [66, 74],
    async run(scene) {
      const { read, store } = readers(scene, IMPATIENT_MS)
      const first = await read.acquire({ lease })
      store.hang()
      const late = Array.from({ length: 5 }, () => rejectsWith('STORE_UNAVAILABLE', read.acquire({ lease })))
      await inTime('all of them', Promise.all(late))
      // Where a session decides about leases, its time may be over by now.
      assert.ok(first.isValid || !scene.perHoldLease)
      store.heal()
      await (await inTime('a reader', read.acquire({ lease }))).release()
    },
  },
  {
    title: 'readers that give up delay no waiter, and leave nothing behind',
    behaviours: [13, 66],
    async run(scene) {
      const { read, store } = readers(scene)
      const first = await read.acquire({ lease })
      store.hang('pulse')
      const giveUp = new AbortController()
      const gone = Array.from({ length: 20 }, () =>
        rejectsWith('ABORTED', read.acquire({ lease, signal: giveUp.signal })),
      )
      // The last one leaves while others want to come in: what it had is theirs, until they give up
      // as well.
      await first.release()
      giveUp.abort()
      await Promise.all(gone)
      store.heal()
      await scene.empty('config')
    },
  },
  {
    title: 'breaking what readers of one process share, by the fence of any of them, tells all',
    behaviours: [87],
    async run(scene) {
      const { read, locks } = readers(scene)
      const two = [await read.acquire({ lease }), await read.acquire({ lease })]
      const holders = (await scene.line('config'))?.holders
      const revoked = await locks.breakHold('config', { fence: two[1]?.fence ?? 0 })
      assert.deepEqual(
        revoked.map(({ permits }) => permits),
        [1],
      )
      await eventually('the loss', () => two[1]?.isValid === false)
      assert.equal(two[0]?.isValid, holders?.length === 2)
    },
  },
  {
    title: 'close takes what readers share from all of them, and leaves nothing in line',
    behaviours: [116],
    async run(scene) {
      const { read, locks, store } = readers(scene)
      const two = [await read.acquire({ lease }), await read.acquire({ lease })]
      store.hang('pulse')
      const waiting = Array.from({ length: 5 }, () => rejectsWith('CLOSED', read.acquire({ lease })))
      await locks.close({ drain: 0 })
      await Promise.all(waiting)
      assert.ok(two.every(({ isValid }) => !isValid))
      await scene.empty('config')
    },
  },
]
