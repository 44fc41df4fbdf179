import assert from 'node:assert/strict'
import { rejectsWith } from './checks.js'
import { LONG_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

export const refusalCases: readonly CaseSpec[] = [
  {
    title: 'a store that keeps only locks refuses semaphores and barriers, and says what to use instead',
    behaviours: [88, 98],
    async run(scene) {
      const locks = scene.client()
      // Either may be refused when it is made, or when it is used.
      const acquire = async () => locks.semaphore('pool', 2).acquire({ lease: LONG_MS })
      const tryAcquire = async () => locks.semaphore('pool', 1).tryAcquire({ lease: LONG_MS })
      const meet = async () => locks.barrier('phase', 1).meet({ lease: LONG_MS })
      if (scene.countsPermits) {
        for (const use of [acquire, tryAcquire]) await (await use())?.release()
        await meet()
        return
      }
      for (const use of [acquire, tryAcquire, meet]) {
        const { message } = await rejectsWith('UNSUPPORTED', use())
        assert.match(message, /\buse\b/, message)
      }
      // Nothing was sent: the name is free for a lock.
      await locks.mutex('pool').run(() => {})
      assert.equal(await scene.line('barrier:phase'), undefined)
    },
  },
]
