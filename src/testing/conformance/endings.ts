import assert from 'node:assert/strict'
import { eventually, inTime, pass, rejectsWith } from './checks.js'
import { LONG_MS, RENEWED_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

export const endingCases: readonly CaseSpec[] = [
  {
    title: 'a process that holds a lock and has nothing else to do ends by itself',
    behaviours: [36, 116],
    processes: true,
    async run(scene) {
      const worker = await scene.worker()
      await worker.call('acquire', 'door', { lease: RENEWED_MS })
      await worker.letGo()
      assert.deepEqual(await inTime('its end', worker.exited), { code: 0, signal: null })
      // Nobody released it: its lease decides.
      await inTime('the lease', scene.client().mutex('door').acquire())
    },
  },
  {
    title: 'a process that waits for a lock stays alive until it has had it, then ends by itself',
    behaviours: [116],
    processes: true,
    async run(scene) {
      const holder = await scene.client().mutex('door').acquire({ lease: LONG_MS })
      const [forEver, timed] = await scene.workers(2)
      assert.ok(forEver && timed)
      await forEver.call('queue', 'door', 1, { lease: RENEWED_MS }, 0)
      await timed.call('queue', 'door', 1, { lease: RENEWED_MS, wait: '1h' }, 0)
      await scene.waiting('door', 2)
      await Promise.all([forEver.letGo(), timed.letGo()])
      await pass(RENEWED_MS)
      assert.equal(forEver.isRunning, true)
      assert.equal(timed.isRunning, true)
      // One that was too slow for its presence is just asking anew; one that does not keep its
      // place is never there again.
      await scene.waiting('door', 2)
      await holder.release()
      for (const worker of [forEver, timed])
        assert.deepEqual(await inTime('its end', worker.exited), { code: 0, signal: null })
      await scene.empty('door')
    },
  },
  {
    title: 'after close a process ends by itself, and what it held is free at once',
    behaviours: [116, 117],
    processes: true,
    async run(scene) {
      const worker = await scene.worker({ order: 'strict' })
      await worker.call('acquire', 'door', { lease: LONG_MS })
      await worker.call('queue', 'door', 3, { lease: LONG_MS }, 0)
      await scene.waiting('door', 3)
      await worker.call('close')
      await scene.empty('door')
      await worker.letGo()
      assert.deepEqual(await inTime('its end', worker.exited), { code: 0, signal: null })
    },
  },
  {
    title: 'a process that has only opened a client ends by itself',
    behaviours: [116],
    processes: true,
    async run(scene) {
      const worker = await scene.worker()
      await worker.letGo()
      assert.deepEqual(await inTime('its end', worker.exited), { code: 0, signal: null })
    },
  },
  {
    title: 'a process that waits for a latch stays alive until it opens, then ends by itself',
    behaviours: [97, 116],
    processes: true,
    async run(scene) {
      const worker = await scene.worker()
      worker.call('waitForLatch', 'ready', 1).catch(() => {})
      await pass(100)
      await worker.letGo()
      await pass(400)
      assert.equal(worker.isRunning, true)
      await scene.client().latch('ready', 1).countDown()
      assert.deepEqual(await inTime('its end', worker.exited), { code: 0, signal: null })
    },
  },
  {
    title: 'after close a process ends by itself, also with parties, candidates and observers waiting in it',
    behaviours: [97, 98, 99, 116, 117],
    processes: true,
    async run(scene) {
      const worker = await scene.worker()
      const { countsPermits } = scene
      const waits = [
        worker.call('waitForLatch', 'ready', 1),
        ...(countsPermits ? [worker.call('meet', 'phase', 2, 1, {})] : []),
        worker.call('acquireAll', ['a', 'b'], {}).then(() => worker.call('acquireAll', ['b', 'c'], {})),
        worker.call('campaign', 'boss', {}).then(() => worker.call('campaign', 'boss', {})),
      ].map((wait) => rejectsWith('CLOSED', wait))
      await worker.call('observe', 'boss')
      await scene.waiting('election:boss', 1)
      await scene.waiting('b', 1)
      const parties = countsPermits ? 1 : undefined
      await eventually(
        'the party',
        async () => (await scene.line('barrier:phase'))?.holders.length === parties,
      )
      await worker.call('close')
      await Promise.all(waits)
      for (const name of ['a', 'b', 'c', 'barrier:phase', 'election:boss']) await scene.empty(name)
      await worker.letGo()
      assert.deepEqual(await inTime('its end', worker.exited), { code: 0, signal: null })
    },
  },
]
