import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deferred } from '../../base/deferred.js'
import type { OnceOptions } from '../../primitives/once.js'
import { eventually, inTime, now, pass, rejectsWith, settled } from './checks.js'
import { FORGIVING_MS, IMPATIENT_MS, LONG_MS, RENEWED_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

const PATIENT: OnceOptions = { atLeast: LONG_MS, atMost: LONG_MS }

/** A file in which each run writes a line. */
async function withLog(work: (file: string, runs: () => Promise<number>) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-once-'))
  const file = join(folder, 'log')
  const runs = async (): Promise<number> =>
    (await readFile(file, 'utf8').catch(() => '')).split('\n').length - 1
  try {
    await work(file, runs)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

export const onceCases: readonly CaseSpec[] = [
  {
    title: 'of many who tick at once, one runs, and the others know that they did not',
    behaviours: [15],
    async run(scene) {
      const clients = [scene.client(), scene.client(), scene.client()]
      let runs = 0
      const tick = (index: number) =>
        clients[index % 3]?.once('nightly', PATIENT, async (hold) => {
          runs++
          assert.equal(hold.isValid, true)
          await pass(20)
          return 'done'
        })
      const outcomes = await Promise.all([0, 1, 2, 3, 4, 5].map(tick))
      assert.equal(runs, 1)
      assert.deepEqual(
        outcomes.filter((outcome) => outcome?.ran),
        [{ ran: true, value: 'done' }],
      )
    },
  },
  {
    title: 'a run that was fast is not repeated within atLeast, and is after it',
    behaviours: [15],
    async run(scene) {
      const options = { atLeast: 700, atMost: '1m' } as const
      const startedAt = now()
      assert.deepEqual(await scene.client().once('nightly', options, () => 1), { ran: true, value: 1 })
      await scene.empty('once:nightly')
      let second = await scene.client().once('nightly', options, () => 2)
      while (!second.ran) {
        await pass(10)
        second = await scene.client().once('nightly', options, () => 2)
      }
      assert.ok(now() - startedAt >= 700, `repeated after ${now() - startedAt} ms`)
      assert.deepEqual(await scene.client().once('daily', PATIENT, () => 3), { ran: true, value: 3 })
    },
  },
  {
    title: 'a run that takes longer than atLeast is not joined by another',
    behaviours: [15],
    async run(scene) {
      const [entered, leave] = [deferred<void>(), deferred<void>()]
      const first = scene.client().once('nightly', { atLeast: 100, atMost: LONG_MS }, async () => {
        entered.resolve()
        await leave.promise
      })
      await entered.promise
      await pass(200)
      assert.deepEqual(await scene.client().once('nightly', { atLeast: 100, atMost: LONG_MS }, () => 1), {
        ran: false,
      })
      leave.resolve()
      assert.equal((await first).ran, true)
    },
  },
  {
    title: 'an error of the work passes through, and the work is not repeated within atLeast',
    behaviours: [27],
    async run(scene) {
      const failure = new Error('the report failed')
      const outcome = await settled(
        scene.client().once('nightly', PATIENT, () => {
          throw failure
        }),
      )
      assert.ok('error' in outcome && outcome.error === failure)
      assert.deepEqual(await scene.client().once('nightly', PATIENT, () => 1), { ran: false })
      await scene.empty('once:nightly')
    },
  },
  {
    title: 'work that takes longer than atMost is told by its signal, and rejects with HOLD_LOST',
    behaviours: [34, 42],
    async run(scene) {
      const run = scene.client().once('nightly', { atLeast: 50, atMost: RENEWED_MS }, async ({ signal }) => {
        await eventually('the signal', () => signal.aborted)
      })
      const error = await rejectsWith('HOLD_LOST', run)
      assert.match(error.message, /maxHold/)
      // The client knows it before the store does, and what it takes back is on its way.
      await scene.empty('once:nightly')
      const again = await scene.client().once('nightly', PATIENT, () => 2)
      assert.deepEqual(again, { ran: true, value: 2 })
    },
  },
  {
    title: 'a start whose reply is lost is a start: the work runs, once',
    behaviours: [31],
    async run(scene) {
      for (const method of ['claim', 'read', 'write', 'release'] as const) {
        const { locks, store } = scene.intercepted({ storeTimeout: FORGIVING_MS })
        store.around = async (call, go) => {
          const reply = await go()
          const isFirst = call.method === method && store.count(method) === 1
          return isFirst ? new Promise<never>(() => {}) : reply
        }
        let runs = 0
        const outcome = await inTime(
          `a lost ${method}`,
          locks.once(method, PATIENT, () => ++runs),
        )
        assert.deepEqual([outcome, runs], [{ ran: true, value: 1 }, 1])
        assert.deepEqual(await scene.client().once(method, PATIENT, () => 2), { ran: false })
      }
    },
  },
  {
    title: 'a start that cannot be written down does not happen, and bars nobody',
    behaviours: [99, 115],
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: IMPATIENT_MS })
      store.cut('write')
      await rejectsWith(
        'STORE_UNAVAILABLE',
        locks.once('nightly', PATIENT, () => assert.fail('it ran')),
      )
      await scene.empty('once:nightly')
      assert.equal((await scene.client().once('nightly', PATIENT, () => 1)).ran, true)
    },
  },
  {
    title: 'wrong arguments of once are refused before anything is sent',
    behaviours: [14],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const wrong: unknown[] = [
        { atLeast: 0, atMost: 1000 },
        { atLeast: 1000 },
        { atMost: 1000 },
        { atLeast: 1000, atMost: Infinity },
        { atLeast: 1000, atMost: 1000, lease: 0 },
        null,
      ]
      for (const options of wrong)
        await rejectsWith(
          'INVALID_ARGUMENT',
          locks.once('nightly', options as OnceOptions, () => {}),
        )
      await rejectsWith('INVALID_ARGUMENT', locks.once('nightly', PATIENT, 'work' as unknown as () => void))
      await rejectsWith(
        'INVALID_ARGUMENT',
        locks.once('', PATIENT, () => {}),
      )
      assert.equal(store.calls.length, 0)
      await locks.close()
      await rejectsWith(
        'CLOSED',
        locks.once('nightly', PATIENT, () => {}),
      )
    },
  },
  {
    title: 'of many processes one runs at each tick',
    behaviours: [15],
    processes: true,
    async run(scene) {
      await withLog(async (file, runs) => {
        const workers = await scene.workers(4)
        for (let tick = 1; tick <= 3; tick++) {
          const outcomes = await Promise.all(
            workers.map((worker) => worker.call('once', `tick ${tick}`, PATIENT, file, 5)),
          )
          assert.equal(outcomes.filter((ran) => ran).length, 1)
          assert.equal(await runs(), tick)
        }
      })
    },
  },
  {
    title: 'a run that is killed in the middle is not repeated within atLeast, and is after it',
    behaviours: [18],
    processes: true,
    async run(scene) {
      await withLog(async (file, runs) => {
        const options = { atLeast: 6000, atMost: LONG_MS }
        const [victim, other] = await scene.workers(2)
        assert.ok(victim && other)
        const startedAfter = now()
        // Its hold has to outlive a busy moment before the work, and to end soon after the kill.
        victim.call('once', 'nightly', { ...options, lease: RENEWED_MS }, file, LONG_MS).catch(() => {})
        await eventually('it has begun', async () => (await runs()) === 1)
        await victim.kill()
        await scene.empty('once:nightly')
        // Its hold is gone, and still nobody repeats it.
        if (await other.call('once', 'nightly', options, file, 0)) assert.ok(now() - startedAfter >= 6000)
        await eventually(
          'a later tick',
          async () => (await runs()) === 2 || other.call('once', 'nightly', options, file, 0),
        )
        assert.ok(now() - startedAfter >= 6000, `repeated after ${now() - startedAfter} ms`)
      })
    },
  },
]
