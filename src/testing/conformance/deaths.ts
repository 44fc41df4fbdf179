import assert from 'node:assert/strict'
import { systemEnv } from '../../base/env.js'
import type { WorkerClient } from '../worker-client.js'
import { assertIncreasing, eventually, inTime, now, pass, Watched } from './checks.js'
import { LONG_MS, RENEWED_MS, type Scene, SHORT_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

/** Until when the store keeps the hold of that process, if nobody renews it: by `now()`. */
async function heldUntil(scene: Scene, name: string, pid: number): Promise<number> {
  // What the answer tells was true when it was asked for, or later.
  const askedAt = now()
  const holder = (await scene.line(name))?.holders.find((each) => each.pid === pid)
  // On a slow machine it may be over already.
  return holder ? askedAt + holder.expires.getTime() - systemEnv.wallMs() : 0
}

export const deathCases: readonly CaseSpec[] = [
  {
    title: 'kill -9 of the holder: the next one gets the lock after the lease, not before',
    behaviours: [18, 33],
    processes: true,
    everyLock: true,
    async run(scene) {
      const worker = await scene.worker()
      const next = scene.client()
      const claimedAfter = now()
      await worker.call('acquire', 'door', { lease: RENEWED_MS })
      const waiting = new Watched(scene.lock('door', next).acquire({ lease: LONG_MS }))
      await scene.waiting('door', 1)
      await worker.kill()
      const until = await heldUntil(scene, 'door', worker.pid)
      assert.equal(await scene.lock('door').tryAcquire(), null)
      await inTime('the lease of the killed holder', waiting.promise)
      // Rounded to milliseconds on the way through a Date. Of a session nobody knows when it was
      // heard of last.
      if (scene.perHoldLease)
        assert.ok(waiting.settledAt >= until - 3, `${until - waiting.settledAt} ms too early`)
      assert.ok(waiting.settledAt >= claimedAfter + RENEWED_MS)
    },
  },
  {
    title: 'kill -9 of a waiter: those behind are not held up beyond its presence',
    behaviours: [19, 74],
    processes: true,
    async run(scene) {
      const holder = await scene.client().mutex('door').acquire({ lease: LONG_MS })
      const worker = await scene.worker({ presence: RENEWED_MS, order: 'strict' })
      await worker.call('queue', 'door', 3, { lease: LONG_MS }, 0)
      await scene.waiting('door', 3)
      const behind = new Watched(scene.client().mutex('door').acquire({ lease: RENEWED_MS }))
      await scene.waiting('door', 4)
      await worker.kill()
      await holder.release()
      await inTime('the one behind', behind.promise)
    },
  },
  {
    title: 'kill -9 of the holder together with the next 500 waiters: the rest go on',
    behaviours: [18, 19, 74, 75],
    processes: true,
    alone: true,
    async run(scene) {
      const presence = 3000
      // It has the lock until all are in line: while its process is busy with 500 claims, a hold of
      // that process may come to its end.
      const opener = await scene.client().mutex('door').acquire({ lease: LONG_MS })
      const worker = await scene.worker({ presence, order: 'strict' })
      const label = 'holder'
      await worker.call('queue', 'door', 1, { lease: presence, label }, LONG_MS)
      await scene.inLine('door', label)
      await worker.call('queue', 'door', 500, { lease: presence }, 0)
      await scene.waiting('door', 501)
      const fences: number[] = []
      const rest = [0, 1, 2].map(() =>
        scene
          .client()
          .mutex('door')
          .run((hold) => void fences.push(hold.fence), { lease: presence }),
      )
      await scene.waiting('door', 504)
      await opener.release()
      await eventually('the holder', async () => (await scene.line('door'))?.holders[0]?.label === label)
      await worker.kill()
      // The bound is lease + presence + one pulse; the rest is patience with a loaded machine.
      await inTime('the rest', Promise.all(rest), 2 * presence + presence / 3 + 30_000)
      assertIncreasing(fences)
      // On a slow machine some have lost their places, and died in others behind the rest.
      await scene.empty('door')
    },
  },
  {
    title: 'kill -9 at any moment of a claim or release wedges nothing',
    behaviours: [15, 18, 19, 117],
    processes: true,
    alone: true,
    async run(scene) {
      const survivors = await scene.workers(2, { presence: SHORT_MS })
      for (const survivor of survivors) await survivor.call('hammer', 'door', { lease: SHORT_MS })
      // Each takes a session's time-out where that bounds every lease.
      const rounds = scene.perHoldLease ? 6 : 2
      for (let round = 0; round < rounds; round++) {
        const victim = await scene.worker({ presence: SHORT_MS })
        await victim.call('hammer', 'door', { lease: SHORT_MS })
        await pass(10 + systemEnv.random() * 60)
        await victim.kill()
        for (const survivor of survivors) await goesOn(survivor)
      }
      const hold = await inTime('a newcomer', scene.client().mutex('door').acquire({ lease: LONG_MS }))
      assert.equal(hold.isValid, true)
    },
  },
  {
    title: 'several processes killed at once while they contend: a newcomer gets the lock',
    behaviours: [18, 19],
    processes: true,
    async run(scene) {
      const victims = await scene.workers(3, { presence: SHORT_MS })
      for (const victim of victims) await victim.call('hammer', 'door', { lease: SHORT_MS })
      await eventually('all are at it', async () =>
        (await Promise.all(victims.map((victim) => victim.call('hammered')))).every((count) => count > 5),
      )
      await Promise.all(victims.map((victim) => victim.kill()))
      await inTime('a newcomer', scene.client().mutex('door').acquire({ lease: RENEWED_MS }))
    },
  },
]

async function goesOn(worker: WorkerClient): Promise<void> {
  const before = await worker.call('hammered')
  await eventually(`process ${worker.pid} goes on`, async () => (await worker.call('hammered')) > before)
}
