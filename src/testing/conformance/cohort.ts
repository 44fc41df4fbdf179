import assert from 'node:assert/strict'
import { getEventListeners, setMaxListeners } from 'node:events'
import type { BeatReply, Push } from '../../contract/store.js'
import type { Hold } from '../../engine/hold.js'
import type { Holdfast } from '../../primitives/holdfast.js'
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
import { type InterceptedStore, sayNothing } from './intercepted-store.js'
import { IMPATIENT_MS, LONG_MS, RENEWED_MS, type Scene } from './scene.js'
import type { CaseSpec } from './suite.js'

/** At most so many neighbours are served by one grant while others wait. */
const BOUND = 64
/** And for so long. A machine that stands still ends turns by that, which are then shorter than the bound. */
const TURN_MS = 50

/** Holds that are passed on inside a process. Whatever the suite's own order is, these clients use cohorts. */
export const cohortCases: readonly CaseSpec[] = [
  {
    title:
      'neighbours pass a hold on in order of arrival, each with a greater fence, and hardly ask the store',
    behaviours: [56, 66, 72, 75],
    async run(scene) {
      const isTold = scene.perHoldLease && (await scene.tellsOfWaiters())
      const { locks, store } = cohort(scene)
      const startedAt = now()
      const holder = await scene.lock('door', locks).acquire({ lease: LONG_MS })
      const [served, fences] = [[] as number[], [holder.fence]]
      const all = Array.from({ length: 200 }, (_, number) =>
        scene.lock('door', locks).run(
          (hold) => {
            assert.equal(hold.isValid, true)
            served.push(number)
            fences.push(hold.fence)
          },
          { lease: LONG_MS },
        ),
      )
      const calls = store.calls.length
      assert.equal(await holder.release(), true)
      await inTime('all of them', Promise.all(all))
      assert.deepEqual(served, [...Array(200).keys()])
      assertIncreasing(fences)
      // A store that cannot always tell whether others wait sees a release and a claim for each bound, and for each turn that time has ended.
      const turns = 201 / BOUND + (isTold ? 0 : (now() - startedAt) / TURN_MS)
      assert.ok(store.calls.length - calls <= 2 * turns + 4, `${store.calls.length - calls} calls`)
      await scene.empty('door')
    },
  },
  {
    title: 'one process with many waiters does not keep the lock from another one beyond the bound',
    behaviours: [72, 74],
    async run(scene) {
      const [many, lone] = [cohort(scene).locks, scene.client({ order: 'cohort' })]
      const served: string[] = []
      const first = await scene.lock('door', many).acquire({ lease: LONG_MS })
      const crowd = Array.from({ length: 500 }, () =>
        scene.lock('door', many).run(() => void served.push('crowd'), { lease: LONG_MS }),
      )
      const other = scene.lock('door', lone).run(() => void served.push('lone'), { lease: LONG_MS })
      await scene.waiting('door', 1)
      await pass(20)
      await first.release()
      await inTime('everybody', Promise.all([...crowd, other]))
      assert.ok(served.indexOf('lone') <= BOUND, `the lone one was number ${served.indexOf('lone')}`)
    },
  },
  {
    title: 'holds that take their time are passed on a few times only while another process waits',
    behaviours: [72, 74],
    async run(scene) {
      const [many, lone] = [cohort(scene).locks, scene.client({ order: 'cohort' })]
      const served: string[] = []
      const first = await scene.lock('door', many).acquire({ lease: LONG_MS })
      const slow = async (): Promise<void> => {
        served.push('crowd')
        await pass(20)
      }
      const crowd = Array.from({ length: 20 }, () => scene.lock('door', many).run(slow, { lease: LONG_MS }))
      const other = scene.lock('door', lone).run(() => void served.push('lone'), { lease: LONG_MS })
      await scene.waiting('door', 1)
      await pass(20)
      await first.release()
      await inTime('everybody', Promise.all([...crowd, other]))
      // A turn is 50 ms; however slow the machine is, no more of them fit into it.
      assert.ok(served.indexOf('lone') <= 4, `the lone one was number ${served.indexOf('lone')}`)
    },
  },
  {
    title: 'groups of one process that ask in other words take turns, as processes do',
    behaviours: [72, 74],
    async run(scene) {
      const { locks, store } = cohort(scene)
      const holder = await scene.lock('door', locks).acquire({ lease: LONG_MS })
      const served: number[] = []
      const all = Array.from({ length: 100 }, (_, number) =>
        scene.lock('door', locks).run(() => void served.push(number), { lease: LONG_MS + (number % 2) }),
      )
      await scene.waiting('door', 1)
      const startedAt = now()
      await holder.release()
      await inTime('everybody', Promise.all(all))
      for (const group of [0, 1]) assertIncreasing(served.filter((number) => number % 2 === group))
      const most = 6 + (now() - startedAt) / TURN_MS
      assert.ok(store.count('release') <= most, `${store.count('release')} turns, at most ${most}`)
    },
  },
  {
    title: 'where a store does not say whether others wait, a hold is passed on for a turn only',
    behaviours: [72, 74],
    async run(scene) {
      const { locks, store } = cohort(scene)
      sayNothing(store)
      const holder = await scene.lock('door', locks).acquire({ lease: LONG_MS })
      const all = Array.from({ length: 200 }, () =>
        scene.lock('door', locks).run(() => {}, { lease: LONG_MS }),
      )
      await holder.release()
      await inTime('all of them', Promise.all(all))
      assert.ok(store.count('release') >= 200 / BOUND, `${store.count('release')} turns`)
    },
  },
  {
    title: 'a holder learns that others have begun to wait for it',
    behaviours: [73],
    async run(scene) {
      const raw = scene.raw()
      const first = await raw.claim(scene.claimOf('door', 'raw:1', { block: 4 }))
      assert.ok(first.status === 'granted')
      // A store may leave it out; what it says must be true.
      if (first.isWanted === undefined) return
      assert.equal(first.isWanted, false)
      await raw.claim(scene.claimOf('door', 'raw:2'))
      const beat = { resource: 'door', id: 'raw:1', leaseMs: LONG_MS, presenceMs: LONG_MS }
      const [wanted, again] = await raw.pulse([beat, { ...beat, block: 2 }])
      assert.deepEqual([wanted, again].map(isWanted), [true, true])
      await raw.release('door', 'raw:2')
      const [free] = await raw.pulse([{ ...beat, block: 2 }])
      assert.equal(isWanted(free), false)
    },
  },
  {
    title: 'a holder is told at once that others have begun to wait for it',
    behaviours: [73],
    async run(scene) {
      const raw = scene.raw()
      const first = await raw.claim(scene.claimOf('door', 'raw:1', { block: 4 }))
      if (first.status === 'granted' && first.isWanted === undefined) return
      await raw.claim(scene.claimOf('door', 'raw:2'))
      const isTold = (news: Push): boolean => news.type === 'wanted' && news.id === 'raw:1'
      await eventually('the push', () => raw.pushes.some(isTold))
    },
  },
  {
    title: 'a stale task is fenced off by the neighbour that came after it',
    behaviours: [66],
    async run(scene) {
      const { locks } = cohort(scene)
      let newest = 0
      const write = (fence: number): boolean => {
        if (fence < newest) return false
        newest = fence
        return true
      }
      const stale = await scene.lock('door', locks).acquire({ lease: LONG_MS })
      const next = scene.lock('door', locks).acquire({ lease: LONG_MS })
      assert.equal(write(stale.fence), true)
      // It forgets that it has given the lock back, as a task does that goes on after its time-out.
      await stale.release()
      const hold = await inTime('the neighbour', next)
      assert.equal(write(hold.fence), true)
      assert.equal(stale.isValid, false)
      assert.equal(write(stale.fence), false)
      assert.equal(write(hold.fence), true)
      await hold.release()
    },
  },
  {
    title: 'a release after the hold was passed on takes nothing from the neighbour',
    behaviours: [56, 66],
    async run(scene) {
      const { locks } = cohort(scene)
      const first = await scene.lock('door', locks).acquire({ lease: LONG_MS })
      const second = scene.lock('door', locks).acquire({ lease: LONG_MS })
      assert.equal(await first.release(), true)
      const hold = await inTime('the neighbour', second)
      assert.equal(await first.release(), true)
      await rejectsWith('NOT_HELD', first.extend('1s'))
      assert.equal(await scene.lock('door').tryAcquire(), null)
      assert.equal(hold.isValid, true)
      assert.equal(await hold.release(), true)
      await scene.empty('door')
    },
  },
  {
    title: 'the late push of a grant that was passed on since gives nobody a hold',
    behaviours: [66, 79],
    async run(scene) {
      const { locks, store } = cohort(scene)
      const holder = await scene.lock('door').acquire({ lease: LONG_MS })
      const pushes: (() => void)[] = []
      store.onPush = (_news, deliver) => void pushes.push(deliver)
      const first = scene.lock('door', locks).acquire({ lease: RENEWED_MS * 4 })
      await scene.waiting('door', 1)
      const second = new Watched(scene.lock('door', locks).acquire({ lease: RENEWED_MS * 4 }))
      await holder.release()
      // Found by its pulse.
      const hold = await inTime('the first', first)
      store.hang('pulse')
      const claims = store.count('claim')
      await hold.release()
      for (const deliver of pushes) deliver()
      await pass(50)
      // Where the store cannot tell whether others wait, the turn may be over, and it is had anew.
      const isAnew = store.count('claim') > claims
      assert.ok(!second.isSettled || isAnew, 'it has the fence of the one before')
      store.heal()
      const next = await inTime('the second', second.promise)
      assertIncreasing([hold.fence, next.fence])
      await next.release()
    },
  },
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
      // Where the store cannot tell whether others wait, the turn is over, and it is had anew.
      assert.ok(!next.isSettled || store.count('claim') > claims, 'it was passed on as it was')
      store.heal()
      const hold = await inTime('the neighbour', next.promise)
      // Where the machine stood still for too long, it was lost and is had anew.
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
    title: 'a neighbour that gives up keeps nobody, and its place is the next one’s',
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
    title: 'extended, shrunk or exported, a hold goes back to the store and is not passed on',
    behaviours: [66],
    async run(scene) {
      const { locks, store } = cohort(scene)
      const doings: ((hold: Hold) => Promise<unknown>)[] = [
        (hold) => hold.extend(50),
        (hold) => hold.downgrade(),
        (hold) => hold.export(),
      ]
      for (const doing of doings) {
        const hold = await inTime('a hold', scene.lock('door', locks).acquire({ lease: LONG_MS }))
        const next = scene.lock('door', locks).acquire({ lease: LONG_MS })
        await doing(hold)
        const before = store.count('release')
        await hold.release()
        assert.equal(store.count('release'), before + 1)
        await (await inTime('the next one', next)).release()
      }
    },
  },
  {
    title: 'a hold that was passed on can be exported, and adopted with a greater fence',
    behaviours: [56, 66],
    async run(scene) {
      const { locks } = cohort(scene)
      const first = await scene.lock('door', locks).acquire({ lease: LONG_MS })
      const second = scene.lock('door', locks).acquire({ lease: LONG_MS })
      await first.release()
      const hold = await inTime('the second', second)
      const adopted = await scene.client().adopt(await hold.export())
      await eventually('the loss', () => !hold.isValid)
      assertIncreasing([first.fence, hold.fence, adopted.fence])
      await adopted.release()
      await scene.empty('door')
    },
  },
  {
    title: 'inspection shows the present one, who can be broken by its fence',
    behaviours: [119],
    async run(scene) {
      const { locks } = cohort(scene)
      const first = await scene.lock('door', locks).acquire({ lease: LONG_MS, label: 'sweeping' })
      const second = scene.lock('door', locks).acquire({ lease: LONG_MS, label: 'sweeping' })
      await first.release()
      const hold = await inTime('the second', second)
      const shown = await holderOf(locks, 'door')
      assert.equal(shown?.fence, hold.fence)
      assert.equal(shown?.label, 'sweeping')
      // Others see the grant that it stands on, and can break it by that.
      const seen = (await scene.line('door'))?.holders[0]
      assert.equal(seen?.label, 'sweeping')
      assert.equal((await locks.breakHold('door', { fence: hold.fence })).length, 1)
      await eventually('the loss', () => !hold.isValid)
    },
  },
  {
    title: 'who asks in other words is not passed a hold: lease, label, owner and maxHold stay their own',
    behaviours: [66],
    async run(scene) {
      const { locks } = cohort(scene)
      const words = [{ lease: '1m' }, { label: 'other' }, { owner: 'alice' }, { maxHold: '1m' }] as const
      for (const other of words) {
        const first = await scene.lock('door', locks).acquire({ lease: LONG_MS })
        const second = scene.lock('door', locks).acquire({ lease: LONG_MS, ...other })
        await scene.waiting('door', 1)
        await first.release()
        const hold = await inTime('the other', second)
        const seen = (await scene.line('door'))?.holders[0]
        assert.equal(seen?.fence, hold.fence)
        assert.equal(seen?.label ?? null, 'label' in other ? 'other' : null)
        await hold.release()
      }
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

function isWanted(reply: BeatReply | undefined): boolean | undefined {
  return reply?.status === 'held' ? reply.isWanted : undefined
}

function cohort(
  scene: Scene,
  options: Parameters<Scene['intercepted']>[0] = {},
): { locks: Holdfast; store: InterceptedStore } {
  return scene.intercepted({ ...options, order: 'cohort' })
}

async function holderOf(
  locks: Holdfast,
  name: string,
): Promise<{ fence: number; label: string | null } | undefined> {
  for await (const resource of locks.inspect({ prefix: name }))
    if (resource.name === name) return resource.holders[0]
  return undefined
}
