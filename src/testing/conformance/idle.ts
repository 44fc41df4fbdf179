import assert from 'node:assert/strict'
import type { Beat } from '../../contract/store.js'
import { now, pass } from './checks.js'
import type { InterceptedStore } from './intercepted-store.js'
import { LONG_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

const WAITERS = 3_000

export const idleCases: readonly CaseSpec[] = [
  {
    title: `${WAITERS} waiters of one process make no call each while they wait, and are served in order`,
    behaviours: [73, 75],
    alone: true,
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: '1m', presence: '24s', order: 'strict' })
      const door = locks.mutex('door')
      const holder = await scene.client().mutex('door').acquire({ lease: LONG_MS })
      const served: number[] = []
      const all = Array.from({ length: WAITERS }, (_, number) =>
        door.run(() => void served.push(number), { lease: LONG_MS }),
      )
      await scene.waiting('door', WAITERS)
      await assertIdle(store)
      await holder.release()
      await Promise.all(all)
      assert.equal(served.length, WAITERS)
      assert.ok(served.every((number, index) => number === index))
    },
  },
]

/**
 * Over more than one pulse interval of a third of the presence: every place is kept, by a handful
 * of calls.
 */
async function assertIdle(store: InterceptedStore): Promise<void> {
  const callsBefore = store.calls.length
  const startedAt = now()
  const kept = new Set<string>()
  while (kept.size < WAITERS && now() - startedAt < 40_000) {
    await pass(100)
    for (const { about } of store.calls.slice(callsBefore))
      for (const beat of about as Beat[]) kept.add(beat.id)
  }
  const calls = store.calls.slice(callsBefore)
  assert.ok(kept.size >= WAITERS, `only ${kept.size} places were kept`)
  assert.ok(calls.every((call) => call.method === 'pulse'))
  const batches = Math.ceil(WAITERS / store.capabilities.maxBeats)
  assert.ok(calls.length <= 20 * batches, `${calls.length} calls for ${WAITERS} waiters`)
}
