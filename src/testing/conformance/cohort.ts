import assert from 'node:assert/strict'
import type { Hold } from '../../primitives/hold.js'
import type { Holdfast } from '../../primitives/holdfast.js'
import { assertIncreasing, eventually, inTime, now, pass, rejectsWith, Watched } from './checks.js'
import { BOUND, cohort, TURN_MS } from './cohort-scene.js'
import { LONG_MS, RENEWED_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

/**
 * Holds that are passed on inside a process. These clients use cohorts, whatever the order of the
 * suite is.
 */
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
      // A store that cannot always tell whether others wait sees a release and a claim for each
      // bound, and for each turn that time has ended.
      const turns = 201 / BOUND + (isTold ? 0 : (now() - startedAt) / TURN_MS)
      assert.ok(store.calls.length - calls <= 2 * turns + 4, `${store.calls.length - calls} calls`)
      await scene.empty('door')
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
      // Where the store cannot tell whether others wait, the turn may be over, and it is acquired
      // anew.
      const isAnew = store.count('claim') > claims
      assert.ok(!second.isSettled || isAnew, 'it has the fence of the one before')
      store.heal()
      const next = await inTime('the second', second.promise)
      assertIncreasing([hold.fence, next.fence])
      await next.release()
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
    title: 'a request with other options is not passed a hold: lease, label, owner and maxHold stay its own',
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
]

async function holderOf(
  locks: Holdfast,
  name: string,
): Promise<{ fence: number; label: string | null } | undefined> {
  for await (const resource of locks.inspect({ prefix: name }))
    if (resource.name === name) return resource.holders[0]
  return undefined
}
