import assert from 'node:assert/strict'
import type { BeatReply } from '../../contract/store.js'
import { CountingEnv, eventually, inTime, now, pass, rejectsWith, Watched } from './checks.js'
import { IMPATIENT_MS, LONG_MS, RENEWED_MS, SHORT_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

/**
 * For a hold that is watched for many seconds: the longer it is kept, the likelier the machine
 * stands still for long meanwhile.
 */
const STEADY_MS = 2 * RENEWED_MS

export const leaseCases: readonly CaseSpec[] = [
  {
    title: 'the lease begins with the grant: a holder that falls silent at once loses the lock after it',
    behaviours: [18, 33, 34],
    async run(scene) {
      const dead = scene.raw()
      const claimedAt = now()
      const reply = await dead.claim(scene.claimOf('door', 'dead:1', { leaseMs: SHORT_MS }))
      assert.equal(reply.status, 'granted')
      const next = new Watched(scene.lock('door').acquire({ lease: LONG_MS }))
      await inTime('the lease of the silent holder', next.promise)
      assert.ok(next.settledAt - claimedAt >= SHORT_MS, 'granted while the silent holder still had its lease')
    },
  },
  {
    title: 'each hold has the lease that was asked for',
    behaviours: [34],
    async run(scene) {
      const locks = scene.client()
      for (const [name, lease] of [
        ['door', 6000],
        ['window', 60_000],
      ] as const) {
        const sentAt = now()
        const hold = await scene.lock(name, locks).acquire({ lease })
        assert.ok(hold.remainingMs <= lease)
        assert.ok(hold.remainingMs >= lease * 0.9 - (now() - sentAt))
        const holder = (await scene.line(name))?.holders[0]
        assert.ok(holder)
        const leftMs = holder.expires.getTime() - holder.since.getTime()
        // A renewal, where the machine was so slow that there was one, has moved the end.
        const mostMs = lease * 1.5 + (now() - sentAt)
        assert.ok(leftMs >= lease / 2 && leftMs <= mostMs, `the store keeps it for ${leftMs} ms`)
      }
    },
  },
  {
    title: 'a hold is renewed for as long as its holder lives',
    behaviours: [35],
    async run(scene) {
      const hold = await scene.lock('door').acquire({ lease: STEADY_MS })
      const { signal, fence } = hold
      const rival = new Watched(scene.lock('door').acquire({ lease: LONG_MS }))
      const until = now() + 1.5 * STEADY_MS
      await eventually('several renewals, and more than a lease', () => now() > until || !hold.isValid)
      assert.equal(signal.aborted, false)
      assert.equal(hold.isValid, true)
      assert.equal(hold.fence, fence)
      assert.equal(rival.isSettled, false)
      assert.equal(await hold.release(), true)
      await inTime('the rival', rival.promise)
    },
  },
  {
    title: 'renewal ends with the release: no more calls, no more timers',
    behaviours: [36, 117],
    async run(scene) {
      const env = new CountingEnv()
      const { locks, store } = scene.intercepted({ env })
      const hold = await scene.lock('door', locks).acquire({ lease: RENEWED_MS })
      await eventually('a renewal', () => store.count('pulse') > 0)
      await hold.release()
      const calls = store.calls.length
      await pass(RENEWED_MS * 0.7)
      await eventually('no more timers', () => env.activeTimers === 0)
      assert.equal(store.calls.length, calls)
    },
  },
  {
    title: 'one renewal at a time: slow ones do not pile up',
    behaviours: [38],
    async run(scene) {
      // One that takes so long that its answer is given up is followed by another while it is still
      // on its way: these are far from that.
      const { locks, store } = scene.intercepted({ storeTimeout: '30s' })
      const hold = await scene.lock('door', locks).acquire({ lease: LONG_MS })
      // Each takes long, and meanwhile there is news that asks for another one.
      store.around = async (call, go) => {
        if (call.method === 'pulse') {
          store.tell({ type: 'gap' })
          await pass(300)
        }
        return go()
      }
      store.tell({ type: 'gap' })
      await eventually('several slow renewals', () => store.count('pulse') >= 4)
      assert.equal(store.mostPulsesAtOnce, 1)
      assert.equal(hold.isValid, true)
    },
  },
  {
    title: 'extend gives at least that much from now, and never shortens',
    behaviours: [39],
    async run(scene) {
      const hold = await scene.lock('door').acquire({ lease: RENEWED_MS })
      const calledAt = now()
      await hold.extend('20s')
      assert.ok(hold.remainingMs >= 20_000 - (now() - calledAt) - 1, `${hold.remainingMs} ms remain`)
      const holder = (await scene.line('door'))?.holders[0]
      assert.ok(holder && holder.expires.getTime() - holder.since.getTime() > 19_000)
      await hold.extend('1s')
      assert.ok(hold.remainingMs > 10_000)
      // Ordinary renewals ask for less than what is left, and take nothing away.
      await pass(RENEWED_MS / 2)
      assert.ok(hold.remainingMs > 10_000)
    },
  },
  {
    title: 'an extend that fails changes nothing',
    behaviours: [39],
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: IMPATIENT_MS })
      const hold = await scene.lock('door', locks).acquire({ lease: 10_000 })
      // In this order: a pause between the two must not make it too early.
      const leftMs = hold.remainingMs
      const validUntil = leftMs + now()
      store.cut('pulse')
      await rejectsWith('STORE_UNAVAILABLE', hold.extend('1m'))
      assert.ok(now() + hold.remainingMs <= validUntil + 1)
      assert.equal(hold.isValid, true)
    },
  },
  {
    title: 'extend after the hold lapsed fails, and brings nothing back',
    behaviours: [40, 41],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const old = await scene.lock('door', locks).acquire({ lease: SHORT_MS })
      store.cut('pulse')
      await eventually('the loss', () => !old.isValid)
      store.heal()
      await rejectsWith('HOLD_LOST', old.extend('1m'))
      await scene.empty('door')
      const next = await scene.lock('door').acquire({ lease: LONG_MS })
      await rejectsWith('HOLD_LOST', old.extend('1m'))
      await rejectsWith('HOLD_LOST', old.export())
      assert.equal((await scene.line('door'))?.holders[0]?.fence, next.fence)
    },
  },
  {
    title: 'a renewal of what is gone says so and re-creates nothing, not even when the line is empty',
    behaviours: [40, 41],
    async run(scene) {
      const raw = scene.raw()
      const beat = { resource: 'door', id: 'old:1', leaseMs: LONG_MS, presenceMs: LONG_MS }
      await raw.claim(scene.claimOf('door', 'old:1', { leaseMs: SHORT_MS }))
      await scene.empty('door')
      assert.deepEqual(await raw.pulse([beat]), [{ status: 'gone' }])
      assert.equal(await scene.line('door'), undefined)
      const next = await scene.lock('door').acquire({ lease: LONG_MS })
      assert.deepEqual(await raw.pulse([beat]), [{ status: 'gone' }])
      assert.equal((await scene.line('door'))?.holders[0]?.fence, next.fence)
    },
  },
  {
    title: 'nothing outlives maxHold: neither renewals nor extend, and the loss is told',
    behaviours: [34, 39, 42],
    async run(scene) {
      const grantedAfter = now()
      const hold = await scene.lock('door').acquire({ lease: RENEWED_MS, maxHold: 4000 })
      const { signal } = hold
      const extendedAfter = now()
      await rejectsWith('INVALID_ARGUMENT', hold.extend('1m'))
      const extendMs = now() - extendedAfter
      assert.ok(hold.remainingMs <= 4000)
      const next = new Watched(scene.lock('door').acquire({ lease: LONG_MS }))
      await eventually('the cap', () => signal.aborted)
      assert.equal(hold.isValid, false)
      assert.equal((signal.reason as { code?: string }).code, 'HOLD_LOST')
      await inTime('the next one', next.promise)
      // Where a session decides, the client gives it back when its own time is over: earlier by the
      // drift margin and by what the answer took.
      const earlyMs = scene.perHoldLease ? 0 : 50 + extendMs
      assert.ok(next.settledAt - grantedAfter >= 4000 - earlyMs)
      assert.equal(await hold.release(), false)
    },
  },
  {
    title: 'maxHold counts from the grant, not from the waiting',
    behaviours: [34],
    async run(scene) {
      const holder = await scene.lock('door').acquire({ lease: LONG_MS })
      const { locks, store } = scene.intercepted({ storeTimeout: '30s' })
      const waiter = scene.lock('door', locks).acquire({ lease: LONG_MS, maxHold: 4000 })
      await scene.waiting('door', 1)
      await pass(1500)
      // Until a pulse that began after the release is answered with the hold, the client knows only
      // since when it has waited.
      let answeredAt = Infinity
      store.around = async (call, go) => {
        const reply: unknown = await go()
        const isHeld =
          call.method === 'pulse' && (reply as BeatReply[]).some(({ status }) => status === 'held')
        if (isHeld) answeredAt = Math.min(answeredAt, now())
        return reply as Awaited<ReturnType<typeof go>>
      }
      const releasedAt = now()
      await holder.release()
      const hold = await inTime('the waiter', waiter)
      await eventually('the loss by maxHold', () => !hold.isValid)
      // Earlier than the store by the drift margin and by what that answer took; but counted from
      // the waiting it would be 2500.
      const leastMs = 4000 - 50 - (answeredAt - releasedAt)
      assert.ok(now() - releasedAt >= leastMs, `lost ${now() - releasedAt} ms after the grant`)
    },
  },
  {
    title: 'the wall clock set by an hour either way changes nothing for a client',
    behaviours: [51],
    async run(scene) {
      const env = new CountingEnv()
      const locks = scene.client({ env })
      const hold = await scene.lock('door', locks).acquire({ lease: STEADY_MS })
      const waiter = new Watched(scene.lock('door', locks).acquire({ lease: STEADY_MS }))
      for (const hours of [1, -1, 0]) {
        env.wallOffsetMs = hours * 3_600_000
        const until = now() + STEADY_MS * 0.35
        await eventually('a renewal, and together more than a lease', () => now() > until || !hold.isValid)
        assert.equal(hold.isValid, true)
        assert.equal(hold.signal.aborted, false)
        assert.equal(waiter.isSettled, false)
      }
      assert.equal(await hold.release(), true)
      assert.ok((await inTime('the waiter', waiter.promise)).fence > hold.fence)
    },
  },
]
