import assert from 'node:assert/strict'
import { deferred } from '../../base/deferred.js'
import { HoldfastError } from '../../base/errors.js'
import { eventually, inTime, now, pass, rejectsWith, settled, Watched } from './checks.js'
import { LONG_MS, RENEWED_MS, SHORT_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

export const lossCases: readonly CaseSpec[] = [
  {
    title: 'validity counts from the sending of the request, not from its reply',
    behaviours: [44],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      // Of the last one, where a slow machine has asked again; and read when it passes, not before
      // somebody may have stood still.
      let sentAt = 0
      store.around = async (call, go) => {
        sentAt = now()
        const reply = await go()
        if (call.method === 'claim') await pass(500)
        return reply
      }
      const hold = await scene.lock('door', locks).acquire({ lease: 10_000 })
      assert.ok(now() + hold.remainingMs <= sentAt + 10_000, `${hold.remainingMs} ms remain`)
    },
  },
  {
    title: 'renewals, too, count from their sending',
    behaviours: [44],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      let sentAt = 0
      store.around = async (call, go) => {
        if (call.method !== 'pulse') return go()
        sentAt = now()
        const reply = await go()
        await pass(300)
        return reply
      }
      const hold = await scene.lock('door', locks).acquire({ lease: 6000 })
      await eventually('two renewals by themselves', () => {
        if (sentAt > 0) assert.ok(now() + hold.remainingMs <= sentAt + 6000, `${hold.remainingMs} ms remain`)
        return store.count('pulse') > 2
      })
      await hold.extend(scene.extensionMs)
      // The store is asked for a little more, so that it can be relied on. It never shortens.
      const longestMs = Math.max(6000, scene.extensionMs / 0.99 + 2)
      assert.ok(now() + hold.remainingMs <= sentAt + longestMs, `${hold.remainingMs} ms remain`)
    },
  },
  {
    title:
      'with no answer from the store the hold is lost at its local deadline, before the store gives it away',
    behaviours: [42, 44],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const sentAt = now()
      const hold = await scene.lock('door', locks).acquire({ lease: SHORT_MS })
      const { signal } = hold
      store.hang('pulse')
      const next = new Watched(scene.lock('door').acquire({ lease: LONG_MS }))
      // By the clock, not by the signal: where the process stood still, both timers are due at
      // once.
      const wasValid = next.promise.then(() => hold.isValid)
      await eventually('the end of the validity', () => !hold.isValid)
      assert.ok(hold.remainingMs === 0)
      assert.equal(signal.aborted, true)
      assert.equal(await inTime('the next holder', wasValid), false, 'the next one was granted before')
      // Where a session decides, a hold that is lost while it lives on is given back.
      if (scene.perHoldLease) assert.ok(next.settledAt >= sentAt + SHORT_MS)
      const reason: unknown = signal.reason
      assert.ok(reason instanceof HoldfastError && reason.code === 'HOLD_LOST')
    },
  },
  {
    title: 'a loss between renewals is told within one renewal, also when its push is lost',
    behaviours: [42, 43, 26],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      store.onPush = () => {}
      const hold = await scene.lock('door', locks).acquire({ lease: 9000 })
      const { signal } = hold
      await scene.client().breakHold('door', { fence: hold.fence })
      const next = await scene.lock('door').acquire({ lease: LONG_MS })
      const brokenAt = now()
      await eventually('the loss', () => signal.aborted)
      assert.ok(now() - brokenAt < 8900, 'only the end of the lease told it')
      assert.equal(await hold.release(), false)
      assert.equal((await scene.line('door'))?.holders[0]?.fence, next.fence)
    },
  },
  {
    title: 'the signal of a hold that was lost before is aborted when it is first read',
    behaviours: [45],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const [hold, sleeper] = [
        await scene.lock('door', locks).acquire({ lease: SHORT_MS }),
        await scene.lock('window', locks).acquire({ lease: SHORT_MS }),
      ]
      store.cut()
      await eventually('the loss', () => !hold.isValid)
      assert.equal(hold.signal.aborted, true)
      await pass(SHORT_MS)
      // Nobody asked this one anything since; reading the signal is asking.
      assert.equal(sleeper.signal.aborted, true)
    },
  },
  {
    title: 'after the process stood still beyond the lease, the first look says so',
    behaviours: [44, 53],
    alone: true,
    async run(scene) {
      const hold = await scene.lock('door').acquire({ lease: 200 })
      const { signal } = hold
      const until = now() + 220
      // Stands still on purpose: no timer and no reply can come in between.
      while (now() < until);
      assert.equal(hold.isValid, false)
      assert.equal(hold.remainingMs, 0)
      assert.equal(signal.aborted, true)
      await rejectsWith('HOLD_LOST', hold.extend('1s'))
      assert.equal(await hold.release(), false)
    },
  },
  {
    title: 'a loss is told once, and to nobody if nobody listens',
    behaviours: [46],
    async run(scene) {
      const locks = scene.client()
      const lease = RENEWED_MS
      const heard = await scene.lock('door', locks).acquire({ lease })
      const unheard = await scene.lock('window', locks).acquire({ lease })
      let told = 0
      heard.signal.addEventListener('abort', () => told++)
      for (const { resource, fence } of [heard, unheard]) {
        await scene.client().breakHold(resource, { fence })
        await scene.client().breakHold(resource, { fence })
      }
      await eventually('the losses', () => !heard.isValid && !unheard.isValid)
      await settled(heard.extend('1s'))
      await heard.release()
      await pass(20)
      assert.equal(told, 1)
    },
  },
  {
    title: 'a renewal that fails for a while is repeated within the lease, and the hold is kept',
    behaviours: [47, 49],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const lease = scene.longRenewedMs
      const hold = await scene.lock('door', locks).acquire({ lease })
      const { signal, fence } = hold
      store.cut('pulse')
      await eventually('three failed renewals', () => store.count('pulse') >= 3)
      store.heal()
      const healedAt = store.count('pulse')
      await eventually(
        'a renewal after that',
        () => store.count('pulse') > healedAt && hold.remainingMs > 0.72 * lease,
      )
      assert.equal(signal.aborted, false)
      assert.equal(hold.fence, fence)
      assert.equal(await hold.release(), true)
    },
  },
  {
    title: 'a renewal whose reply is lost is repeated before the lease is over',
    behaviours: [47, 49],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const lease = scene.longRenewedMs
      const hold = await scene.lock('door', locks).acquire({ lease })
      let isLost = false
      store.around = async (call, go) => {
        const reply = await go()
        if (call.method !== 'pulse' || isLost) return reply
        isLost = true
        return new Promise<never>(() => {})
      }
      await eventually('a second renewal', () => store.count('pulse') >= 2)
      await eventually('an answered renewal', () => hold.remainingMs > 0.72 * lease)
      assert.equal(hold.signal.aborted, false)
    },
  },
  {
    title: 'a hold outlives the connection that took it, and can be renewed through another one',
    behaviours: [48, 49],
    async run(scene) {
      const first = scene.raw('client')
      const reply = await first.claim(scene.claimOf('door', 'client:1'))
      assert.equal(reply.status, 'granted')
      await first.close()
      assert.equal(await scene.lock('door').tryAcquire(), null)
      const again = scene.raw('client')
      const beat = { resource: 'door', id: 'client:1', leaseMs: LONG_MS, presenceMs: LONG_MS }
      const [kept] = await again.pulse([beat])
      assert.ok(kept?.status === 'held' && reply.status === 'granted' && kept.fence === reply.fence)
    },
  },
  {
    title: 'waiting for longer than the lease does no harm: the hold is fresh when it comes',
    behaviours: [54],
    async run(scene) {
      const holder = await scene.lock('door').acquire({ lease: LONG_MS })
      const lease = 2 * RENEWED_MS
      const waiter = new Watched(scene.lock('door').acquire({ lease }))
      await pass(1.25 * lease)
      assert.equal(waiter.isSettled, false)
      assert.equal((await scene.line('door'))?.waiters.length, 1)
      await holder.release()
      const hold = await inTime('the waiter', waiter.promise)
      assert.equal(hold.isValid, true)
      await eventually('a full lease', () => hold.remainingMs > lease / 2)
    },
  },
  {
    title: 'a hand-off that is read too late is confirmed before it is given out',
    behaviours: [54, 78],
    async run(scene) {
      const holder = await scene.lock('door').acquire({ lease: LONG_MS })
      const { locks, store } = scene.intercepted()
      const never = new Promise<never>(() => {})
      let isStill = false
      store.around = async (_call, go) => {
        const reply = await (isStill ? never : go())
        return isStill ? never : reply
      }
      const late = new Watched(scene.lock('door', locks).acquire({ lease: SHORT_MS }))
      await scene.waiting('door', 1)
      // As if the waiter's process stood still from here on: nothing of it gets through, nothing
      // reaches it, also no answer that is under way.
      isStill = true
      const news = deferred<void>()
      store.onPush = (_news, deliver) => void news.promise.then(deliver)
      const next = scene.lock('door', scene.client({ presence: RENEWED_MS })).acquire({ lease: LONG_MS })
      await holder.release()
      const hold = await inTime('the one behind the silent waiter', next)
      // It wakes up: the push of its promotion, long void, is the first thing it reads.
      news.resolve()
      store.heal()
      await pass(100)
      const outcome = late.isSettled
        ? await late.promise.then(({ fence }) => `holds with ${fence}`, String)
        : 'waits'
      assert.equal(outcome, 'waits')
      assert.equal(hold.isValid, true)
      await hold.release()
      assert.ok((await inTime('its turn in the end', late.promise)).fence > hold.fence)
    },
  },
]
