import assert from 'node:assert/strict'
import type { BeatReply, Push } from '../../contract/store.js'
import { assertIncreasing, eventually, inTime, now, pass } from './checks.js'
import { BOUND, cohort, TURN_MS } from './cohort-scene.js'
import { sayNothing } from './intercepted-store.js'
import { LONG_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

/** For how long a process passes a hold on while others wait. */
export const cohortTurnCases: readonly CaseSpec[] = [
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
    title: 'groups of one process that ask with other options take turns, as processes do',
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
]

function isWanted(reply: BeatReply | undefined): boolean | undefined {
  return reply?.status === 'held' ? reply.isWanted : undefined
}
