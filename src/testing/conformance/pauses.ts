import assert from 'node:assert/strict'
import { eventually, inTime, pass, Watched } from './checks.js'
import { LONG_MS, RENEWED_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

export const pauseCases: readonly CaseSpec[] = [
  {
    title: 'a holder that was stopped beyond its lease knows it at its first look, and disturbs nobody',
    behaviours: [23, 44, 53],
    processes: true,
    everyLock: true,
    async run(scene) {
      const worker = await scene.worker()
      const { hold } = await worker.call('acquire', 'door', { lease: RENEWED_MS })
      await scene.pause(worker)
      const next = await inTime('the next holder', scene.lock('door').acquire({ lease: LONG_MS }))
      // Sent before it wakes: read before anything else can tell it.
      const look = worker.call('look', hold)
      const released = worker.call('release', hold)
      worker.resume()
      assert.deepEqual(await inTime('its look', look), { isValid: false, remainingMs: 0, isAborted: true })
      assert.equal(await released, false)
      const [belief] = await worker.call('beliefs')
      assert.ok(belief && belief.until !== null)
      await pass(50)
      assert.equal(next.isValid, true)
      assert.equal((await scene.line('door'))?.holders[0]?.fence, next.fence)
    },
  },
  {
    title: 'the signal of a holder that was stopped beyond its lease fires by itself',
    behaviours: [42, 53],
    processes: true,
    async run(scene) {
      const worker = await scene.worker()
      await worker.call('acquire', 'door', { lease: RENEWED_MS })
      await scene.pause(worker)
      const next = await inTime('the next holder', scene.client().mutex('door').acquire({ lease: LONG_MS }))
      worker.resume()
      await eventually('the signal', async () => {
        const [belief] = await worker.call('beliefs')
        return belief !== undefined && belief.until !== null
      })
      assert.equal(next.isValid, true)
    },
  },
  {
    title:
      'a waiter that is stopped between its promotion and its reading of it never holds beside the next one',
    behaviours: [54, 19],
    processes: true,
    async run(scene) {
      const worker = await scene.worker({ presence: RENEWED_MS })
      for (let round = 0; round < 2; round++) {
        const holder = await scene.client().mutex('door').acquire({ lease: LONG_MS })
        const late = new Watched(worker.call('acquire', 'door', { lease: RENEWED_MS }))
        await scene.waiting('door', 1)
        await scene.pause(worker)
        const behind = scene.client({ presence: RENEWED_MS })
        const next = behind.mutex('door').acquire({ lease: LONG_MS, label: 'next' })
        await scene.inLine('door', 'next')
        await holder.release()
        const hold = await inTime('the one behind the stopped waiter', next)
        worker.resume()
        await pass(300)
        assert.equal(late.isSettled, false, 'it holds beside the next one')
        assert.equal((await worker.call('beliefs')).length, round)
        assert.equal(hold.isValid, true)
        await hold.release()
        const granted = await inTime('its turn in the end', late.promise)
        assert.ok(granted.fence > hold.fence)
        await worker.call('release', granted.hold)
      }
    },
  },
  {
    title: 'a waiter that is stopped for less than its presence keeps its place',
    behaviours: [49, 72],
    processes: true,
    async run(scene) {
      const worker = await scene.worker({ presence: '10s' })
      const holder = await scene.client().mutex('door').acquire({ lease: LONG_MS })
      const first = worker.call('acquire', 'door', { lease: '10s' })
      await scene.waiting('door', 1)
      await scene.pause(worker)
      const second = new Watched(scene.client().mutex('door').acquire({ lease: LONG_MS }))
      await scene.waiting('door', 2)
      await holder.release()
      await pass(200)
      worker.resume()
      const { hold } = await inTime('the first', first)
      assert.equal(second.isSettled, false)
      assert.equal(await worker.call('release', hold), true)
      await inTime('the second', second.promise)
    },
  },
]
