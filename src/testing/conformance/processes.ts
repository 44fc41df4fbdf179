import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { assertIncreasing, eventually, inTime } from './checks.js'
import { LONG_MS, RENEWED_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

async function withCounterFile(work: (file: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-counter-'))
  const file = join(folder, 'count')
  await writeFile(file, '0')
  try {
    await work(file)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

export const processCases: readonly CaseSpec[] = [
  {
    title: '4 processes count to 1000 in a file that nothing else protects',
    behaviours: [15, 56],
    processes: true,
    alone: true,
    async run(scene) {
      await withCounterFile(async (file) => {
        const workers = await scene.workers(4)
        const runs = workers.map((worker) => worker.call('increment', 'counter', file, 250, { lease: '20s' }))
        const fences = await inTime('1000 increments', Promise.all(runs), 120_000)
        assert.equal(await readFile(file, 'utf8'), '1000')
        for (const own of fences) assertIncreasing(own)
        assert.equal(new Set(fences.flat()).size, 1000)
      })
    },
  },
  {
    title: 'fences grow in the order of the grants, across processes',
    behaviours: [56, 2],
    processes: true,
    everyLock: true,
    async run(scene) {
      const workers = await scene.workers(3)
      for (const worker of workers) await worker.call('queue', 'door', 8, { lease: '20s' }, 1)
      const held = async () => (await Promise.all(workers.map((worker) => worker.call('beliefs')))).flat()
      await eventually('all have had it', async () => {
        const beliefs = await held()
        return beliefs.length === 24 && beliefs.every((belief) => belief.until !== null)
      })
      const beliefs = (await held()).sort((one, other) => one.from - other.from)
      assertIncreasing(beliefs.map((belief) => belief.fence))
      beliefs.forEach((belief, index) => {
        const before = beliefs[index - 1]
        if (before) assert.ok((before.until ?? Infinity) <= belief.from, 'two processes were inside together')
      })
    },
  },
  {
    title: 'grants come in the order of arrival, across processes',
    behaviours: [72],
    processes: true,
    everyLock: true,
    async run(scene) {
      const workers = await scene.workers(3, { order: 'strict' })
      const holder = await scene.lock('door').acquire({ lease: LONG_MS })
      const arrivals: number[] = []
      for (let number = 0; number < 9; number++) {
        const worker = workers[number % 3]
        await worker?.call('queue', 'door', 1, { lease: LONG_MS }, 0)
        arrivals.push(worker?.pid ?? Number.NaN)
        await scene.waiting('door', number + 1)
      }
      await holder.release()
      await scene.empty('door')
      const served: { pid: number; fence: number }[] = []
      for (const worker of workers)
        for (const { fence } of await worker.call('beliefs')) served.push({ pid: worker.pid, fence })
      served.sort((one, other) => one.fence - other.fence)
      assert.deepEqual(
        served.map(({ pid }) => pid),
        arrivals,
      )
    },
  },
  {
    title: 'a release in one process wakes the next one in another by a message, not by its next pulse',
    behaviours: [20, 78],
    processes: true,
    async run(scene) {
      const worker = await scene.worker({ presence: LONG_MS })
      for (let round = 0; round < 5; round++) {
        const holder = await scene.client().mutex('door').acquire({ lease: LONG_MS })
        const waiting = worker.call('acquire', 'door', { lease: LONG_MS })
        await scene.waiting('door', 1)
        await holder.release()
        const { hold } = await inTime('the hand-off', waiting)
        assert.equal(await worker.call('release', hold), true)
      }
    },
  },
  {
    title: 'whether a lock is held, and by which process, is seen from every process',
    behaviours: [1, 119],
    processes: true,
    async run(scene) {
      const [one, two] = await scene.workers(2)
      assert.ok(one && two)
      const { hold, fence } = await one.call('acquire', 'door', { lease: LONG_MS, label: 'first' })
      assert.equal(await scene.client().mutex('door').isLocked(), true)
      assert.equal(await two.call('tryAcquire', 'door', {}), null)
      await two.call('queue', 'door', 1, { lease: LONG_MS, label: 'second' }, 0)
      await scene.waiting('door', 1)
      const line = await scene.line('door')
      const [holder, waiter] = [line?.holders[0], line?.waiters[0]]
      assert.ok(holder && waiter)
      assert.deepEqual([holder.pid, holder.label, holder.fence], [one.pid, 'first', fence])
      assert.deepEqual([waiter.pid, waiter.label], [two.pid, 'second'])
      assert.equal((await two.call('inspect', 'door'))[0]?.holders[0]?.pid, one.pid)
      assert.equal(await one.call('release', hold), true)
      await scene.empty('door')
    },
  },
  {
    title: 'owners and holds of different processes never coincide',
    behaviours: [71, 69],
    processes: true,
    async run(scene) {
      const workers = await scene.workers(3)
      for (const worker of workers)
        for (const name of ['a', 'b'])
          await worker.call('acquire', `${name} ${worker.pid}`, { lease: LONG_MS })
      const owners = new Set<string>()
      for await (const resource of scene.client().inspect())
        for (const holder of resource.holders) owners.add(holder.owner)
      assert.equal(owners.size, 6)
      const [one, two] = workers
      assert.ok(await one?.call('acquire', 'door', { owner: 'alice', lease: LONG_MS }))
      assert.equal(await two?.call('tryAcquire', 'door', { owner: 'alice' }), null)
    },
  },
  {
    title: 'a hold is passed from one process to another, and back',
    behaviours: [55, 56],
    processes: true,
    async run(scene) {
      const [one, two] = await scene.workers(2)
      assert.ok(one && two)
      const first = await one.call('acquire', 'door', { lease: RENEWED_MS })
      const second = await two.call('adopt', await one.call('export', first.hold))
      await eventually('the first holder is told', async () => (await one.call('look', first.hold)).isAborted)
      assert.equal(await one.call('release', first.hold), false)
      const third = await one.call('adopt', await two.call('export', second.hold))
      assertIncreasing([first.fence, second.fence, third.fence])
      assert.equal((await one.call('look', third.hold)).isValid, true)
      assert.equal((await scene.line('door'))?.holders[0]?.pid, one.pid)
    },
  },
  {
    title: 'a hold that is broken from another process is told to its holder',
    behaviours: [26, 43],
    processes: true,
    async run(scene) {
      const worker = await scene.worker()
      const { hold, fence } = await worker.call('acquire', 'door', { lease: RENEWED_MS })
      const [revoked] = await scene.client().breakHold('door', { fence })
      assert.equal(revoked?.pid, worker.pid)
      await eventually('the previous holder is told', async () => (await worker.call('look', hold)).isAborted)
      const next = await scene.client().mutex('door').acquire({ wait: 0, lease: LONG_MS })
      assert.equal(await worker.call('release', hold), false)
      assert.equal((await scene.line('door'))?.holders[0]?.fence, next.fence)
    },
  },
]
