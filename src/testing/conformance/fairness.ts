import assert from 'node:assert/strict'
import type { ClaimRequest, Push } from '../../contract/store.js'
import type { Hold } from '../../primitives/hold.js'
import {
  assertIncreasing,
  eventually,
  hasCode,
  inTime,
  now,
  PATIENCE_MS,
  pass,
  rejectsWith,
  settled,
  Watched,
} from './checks.js'
import { MUTEX_ALONE } from './guises.js'
import { claimOf, LONG_MS, RENEWED_MS, SHORT_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

/** A pulse comes after a third of the presence. */
const BEFORE_NEXT_PULSE_MS = 6000

export const fairnessCases: readonly CaseSpec[] = [
  {
    title: 'grants come in the order of arrival, over several clients',
    behaviours: [72],
    async run(scene) {
      const clients = [0, 1, 2].map(() => scene.client({ order: 'strict' }))
      const holder = await scene.lock('door').acquire({ lease: LONG_MS })
      const served: number[] = []
      const fences: number[] = []
      const all: Promise<unknown>[] = []
      for (let number = 0; number < 12; number++) {
        const work = (hold: Hold): void => {
          served.push(number)
          fences.push(hold.fence)
        }
        const run = scene.lock('door', clients[(number * 2) % 3]).run(work, { lease: LONG_MS })
        all.push(run ?? assert.fail())
        await scene.waiting('door', number + 1)
      }
      await holder.release()
      await inTime('all of them', Promise.all(all))
      assert.deepEqual(served, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
      assertIncreasing(fences)
    },
  },
  {
    title: 'a release tells the next one, and only the next one, without being asked',
    behaviours: [20, 73],
    async run(scene) {
      const holder = await scene.lock('door').acquire({ lease: LONG_MS })
      const news: Push[] = []
      // A store may begin to hear its server a moment after the claims, and says so once.
      let gaps = 0
      const { locks, store } = scene.intercepted({ presence: LONG_MS, order: 'strict' })
      store.onPush = (push, deliver) => {
        if (push.type === 'gap') gaps++
        else news.push(push)
        deliver()
      }
      const waiters = Array.from({ length: 30 }, () =>
        scene.lock('door', locks).acquire({ lease: LONG_MS, wait: '1h' }),
      )
      for (const waiter of waiters) waiter.catch(() => {})
      await scene.waiting('door', 30)
      // Others may see it in line before its own answer comes, which would then tell of the grant.
      await eventually('the answers', () => store.answered('claim') === 30)
      const startedAt = now()
      const calls = store.calls.length
      await holder.release()
      await inTime('the next one', waiters[0] ?? assert.fail())
      // Where it has asked by itself, the news may come later.
      await eventually('the push', () => news.length > 0)
      await pass(50)
      assert.deepEqual(
        news.map((push) => push.type),
        ['granted'],
      )
      // The new holder may renew at once. A store that cannot be sure to push is asked by the one
      // who is next; nobody else asks. Where a session bounds the presence, one pulse for all is
      // due every few seconds.
      const pulses = scene.perHoldLease ? 0 : 1 + (now() - startedAt) / 1000
      if (store.capabilities.askNextEveryMs === null)
        assert.ok(store.calls.length <= calls + 1 + gaps + pulses)
    },
  },
  {
    title: 'a waiter that fell silent holds nobody up for longer than its presence',
    behaviours: [19, 74],
    async run(scene) {
      const holder = await scene.lock('door').acquire({ lease: LONG_MS })
      const silent = scene.raw()
      for (let number = 1; number <= 20; number++)
        await silent.claim(scene.claimOf('door', `silent:${number}`, { presenceMs: 2 * SHORT_MS }))
      const next = new Watched(scene.lock('door').acquire({ lease: 6000, label: 'next' }))
      await scene.inLine('door', 'next')
      await holder.release()
      await inTime('the one behind the silent ones', next.promise)
    },
  },
  {
    title:
      'a waiter behind a hold of its own client that ends by its maxHold is served before its next pulse',
    behaviours: [19, 74],
    async run(scene) {
      const locks = scene.client({ presence: '30s', order: 'strict' })
      const door = scene.lock('door', locks)
      const first = await door.acquire({ lease: LONG_MS })
      // Counted from the promotion: it must be heard of before it is over, on a slow machine, too.
      const capped = door.acquire({ lease: LONG_MS, maxHold: RENEWED_MS })
      await scene.waiting('door', 1)
      // Not the next one yet, so it has not been told when the hold ahead of it ends.
      const next = door.acquire({ lease: LONG_MS })
      await scene.waiting('door', 2)
      await first.release()
      const hold = await inTime('the one with a maxHold', capped)
      await eventually('its end', () => !hold.isValid)
      const endedAt = now()
      await inTime('the next one', next)
      assert.ok(now() - endedAt < BEFORE_NEXT_PULSE_MS)
    },
  },
  {
    title: 'a silent holder with silent waiters behind it holds nobody up for longer than lease and presence',
    behaviours: [18, 19, 74],
    async run(scene) {
      const silent = scene.raw()
      // On a slow machine an answer may come when its claim has lapsed, which some stores refuse.
      const claim = async (number: number, times: Partial<ClaimRequest>): Promise<void> => {
        const ask = async () => silent.claim(scene.claimOf('door', `silent:${number}`, times))
        const outcome = await settled(ask())
        if ('error' in outcome) hasCode('STORE_UNAVAILABLE', outcome.error)
      }
      await claim(0, { leaseMs: SHORT_MS })
      // On a slow machine the first ones have lapsed before the last ones come, which are then
      // granted at once.
      const times = { leaseMs: 2 * SHORT_MS, presenceMs: 2 * SHORT_MS }
      for (let number = 1; number <= 50; number++) await claim(number, times)
      const rest = [0, 1, 2].map(() => scene.lock('door').run(() => {}, { lease: RENEWED_MS }))
      await inTime('those behind', Promise.all(rest))
    },
  },
  {
    title: '500 waiters all get the lock, in order, and the line is empty afterwards',
    behaviours: [75, 72],
    alone: true,
    notAs: MUTEX_ALONE.load,
    async run(scene) {
      const locks = scene.client({ order: 'strict' })
      const holder = await scene.lock('door', locks).acquire({ lease: LONG_MS })
      const served: number[] = []
      const all = Array.from({ length: 500 }, (_, number) =>
        scene.lock('door', locks).run(() => void served.push(number), { lease: '1m' }),
      )
      await scene.waiting('door', 500)
      await holder.release()
      await inTime('all of them', Promise.all(all), 4 * PATIENCE_MS)
      assert.deepEqual(served, [...served.keys()])
      assert.equal(served.length, 500)
      await scene.empty('door')
    },
  },
  {
    title: 'tryAcquire never overtakes a waiter',
    behaviours: [77],
    async run(scene) {
      const locks = scene.client()
      for (let round = 0; round < 10; round++) {
        const holder = await scene.lock('door', locks).acquire({ lease: LONG_MS })
        const waiter = scene.lock('door').acquire({ lease: LONG_MS })
        await scene.waiting('door', 1)
        const released = holder.release()
        const barging = await Promise.all([1, 2, 3].map(() => scene.lock('door').tryAcquire()))
        assert.deepEqual(barging, [null, null, null])
        await released
        await (await inTime('the waiter', waiter)).release()
      }
    },
  },
  {
    title: 'tryAcquire does not take what is free while a larger claim waits for more',
    behaviours: [77],
    notAs: MUTEX_ALONE.load,
    permits: true,
    async run(scene) {
      const raw = scene.raw()
      const claim = (id: string, permits: number, mode: 'queue' | 'try') =>
        raw.claim(claimOf('seats', id, { permits, capacity: 3, mode }))
      assert.equal((await claim('raw:1', 2, 'queue')).status, 'granted')
      assert.equal((await claim('raw:2', 3, 'queue')).status, 'waiting')
      assert.deepEqual(await claim('raw:3', 1, 'try'), { status: 'refused', reason: 'busy' })
      assert.equal((await claim('raw:4', 1, 'queue')).status, 'waiting')
      await raw.release('seats', 'raw:2')
      const [promoted] = await raw.pulse([
        { resource: 'seats', id: 'raw:4', leaseMs: LONG_MS, presenceMs: LONG_MS },
      ])
      assert.equal(promoted?.status, 'held')
    },
  },
  {
    title: 'a lost push strands nobody: the pulse finds the grant',
    behaviours: [78],
    async run(scene) {
      const holder = await scene.lock('door').acquire({ lease: LONG_MS })
      const { locks, store } = scene.intercepted()
      store.onPush = () => {}
      const waiter = scene.lock('door', locks).acquire({ lease: RENEWED_MS })
      await scene.waiting('door', 1)
      await holder.release()
      const hold = await inTime('the grant', waiter)
      assert.equal(hold.isValid, true)
      assert.equal((await scene.line('door'))?.holders[0]?.fence, hold.fence)
    },
  },
  {
    title: 'after a gap in the pushes everything is asked for at once',
    behaviours: [78, 79],
    async run(scene) {
      const holder = await scene.lock('door').acquire({ lease: LONG_MS })
      const { locks, store } = scene.intercepted({ presence: LONG_MS })
      store.onPush = () => {}
      const waiter = scene.lock('door', locks).acquire({ lease: LONG_MS })
      await scene.waiting('door', 1)
      store.tell({ type: 'gap' })
      await pass(20)
      await holder.release()
      store.tell({ type: 'gap' })
      assert.equal((await inTime('the grant, long before the next pulse', waiter)).isValid, true)
      store.tell({ type: 'gap' })
      await eventually('the hold stays', async () => (await waiter).isValid)
    },
  },
  {
    title: 'a push that overtakes the reply to its claim is taken',
    behaviours: [78, 79],
    async run(scene) {
      const holder = await scene.lock('door').acquire({ lease: LONG_MS })
      const { locks, store } = scene.intercepted({ presence: LONG_MS })
      let reply = (): void => {}
      store.around = async (call, go) => {
        const answer = await go()
        if (call.method === 'claim') await new Promise<void>((resolve) => (reply = resolve))
        return answer
      }
      const waiter = scene.lock('door', locks).acquire({ lease: LONG_MS })
      await scene.waiting('door', 1)
      await holder.release()
      const hold = await inTime('the hold, without the reply', waiter)
      reply()
      await pass(20)
      assert.equal(hold.isValid, true)
      assert.equal((await scene.line('door'))?.holders[0]?.fence, hold.fence)
      assert.equal(await hold.release(), true)
    },
  },
  {
    title: 'short waits that time out do not delay the other waiters',
    behaviours: [76],
    async run(scene) {
      const holder = await scene.lock('door').acquire({ lease: LONG_MS })
      const patient = scene.client({ presence: LONG_MS })
      const stays = new Watched(scene.lock('door', patient).acquire({ lease: LONG_MS }))
      await scene.waiting('door', 1)
      const impatient = scene.client()
      for (let time = 0; time < 20; time++)
        await rejectsWith('ACQUIRE_TIMEOUT', scene.lock('door', impatient).acquire({ wait: 10 }))
      await scene.waiting('door', 1)
      await holder.release()
      await inTime('the one who stays', stays.promise)
    },
  },
]
