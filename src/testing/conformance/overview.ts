import assert from 'node:assert/strict'
import { deferred } from '../../base/deferred.js'
import { systemEnv } from '../../base/env.js'
import type { StateView } from '../../contract/store.js'
import { eventually, inTime, rejectsWith } from './checks.js'
import { LONG_MS, type RawClient, SHORT_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

const lease = LONG_MS

/** The states of a prefix, in order of keys. */
async function statesOf(raw: RawClient, prefix: string): Promise<Pick<StateView, 'key' | 'value'>[]> {
  const states: StateView[] = []
  for await (const state of raw.states(prefix)) states.push(state)
  return states.map(({ key, value }) => ({ key, value })).sort((a, b) => (a.key < b.key ? -1 : 1))
}

function valueAt(key: string, value: string, retentionMs: number | null = null) {
  return { key, expect: null, value, retentionMs }
}

/** What can be seen of states, and of what is made of them. */
export const overviewCases: readonly CaseSpec[] = [
  {
    title: 'states are listed by the beginning of their keys, as they are now',
    behaviours: [4, 122],
    async run(scene) {
      const raw = scene.raw()
      assert.deepEqual(await statesOf(raw, ''), [])
      const odd = ['job:%', 'job:*', 'job:_', 'job:{a}', 'job:Ä/..', 'job:\\', "job:'x'"]
      for (const key of [...odd, 'jobs', 'other']) await raw.write(valueAt(key, `of ${key}`))
      assert.deepEqual(
        await statesOf(scene.raw(), 'job:'),
        [...odd].sort().map((key) => ({ key, value: `of ${key}` })),
      )
      for (const key of ['job:%', 'job:*', 'job:_', 'job:{a}'])
        assert.deepEqual(await statesOf(raw, key), [{ key, value: `of ${key}` }])
      assert.equal((await statesOf(raw, '')).length, odd.length + 2)
      assert.deepEqual(await statesOf(raw, 'x'), [])
    },
  },
  {
    title: 'a listing of states shows the version to write with, and nothing that is over',
    behaviours: [122],
    async run(scene) {
      const raw = scene.raw()
      await raw.write(valueAt('a:1', 'old'))
      await raw.write(valueAt('a:2', 'short', SHORT_MS))
      await raw.write(valueAt('a:3', 'deleted'))
      for await (const { key, version } of scene.raw().states('a:')) {
        if (key === 'a:1')
          assert.ok((await raw.write({ key, expect: version, value: 'new', retentionMs: null })).written)
        if (key === 'a:3')
          assert.ok((await raw.write({ key, expect: version, value: null, retentionMs: null })).written)
      }
      await eventually('the end of a:2', async () => (await raw.read('a:2', false)) === null)
      assert.deepEqual(await statesOf(raw, 'a:'), [{ key: 'a:1', value: 'new' }])
    },
  },
  {
    title: 'many states are listed, each once',
    behaviours: [122],
    async run(scene) {
      const raw = scene.raw()
      const keys = Array.from({ length: 450 }, (_, index) => `many:${index}`).sort()
      await Promise.all(keys.map((key) => raw.write(valueAt(key, 'x'))))
      assert.deepEqual(
        (await statesOf(raw, 'many:')).map(({ key }) => key),
        keys,
      )
    },
  },
  {
    title: 'the overview shows elections with their leaders, latches and jobs',
    behaviours: [94, 97, 99, 119, 122],
    async run(scene) {
      const locks = scene.client()
      const before = systemEnv.wallMs() - 60_000
      const first = await locks.election('chief').campaign({ id: 'node-1', lease })
      await first.resign()
      const leader = await locks.election('chief').campaign({ id: 'node-2', lease })
      const candidate = scene.client().election('chief').campaign({ id: 'node-3', lease })
      await scene.waiting('election:chief', 1)
      await locks.latch('ready', 3).countDown()
      await locks.once('report', { atLeast: '1h', atMost: '1h' }, async () => {})
      const { elections, latches, once } = await scene.client().overview()
      const [chief] = elections
      assert.deepEqual(
        [elections.length, chief?.name, chief?.leader?.owner, chief?.term],
        [1, 'chief', 'node-2', leader.term],
      )
      assert.deepEqual(
        chief?.candidates.map(({ owner }) => owner),
        ['node-3'],
      )
      assert.deepEqual(
        chief?.leaders.map(({ id, term }) => [id, term]),
        [
          ['node-2', leader.term],
          ['node-1', first.term],
        ],
      )
      assert.ok((chief?.leaders[0]?.since?.getTime() ?? 0) > before)
      assert.deepEqual(latches, [{ name: 'ready', total: 3, count: 2 }])
      const [report] = once
      assert.deepEqual([once.length, report?.name, report?.running], [1, 'report', null])
      assert.ok((report?.last?.began.getTime() ?? 0) > before)
      await leader.resign()
      await (await inTime('the candidate', candidate)).resign()
    },
  },
  {
    title: 'the overview shows a job that runs, and who runs it',
    behaviours: [119, 122],
    async run(scene) {
      const atMost = '1h'
      const ended = deferred<void>()
      const running = scene.client().once('report', { atLeast: '1h', atMost }, () => ended.promise)
      const operator = scene.client()
      await eventually('the job', async () => {
        const { once } = await operator.overview()
        return once[0]?.running?.pid === process.pid && once[0].last !== null
      })
      ended.resolve()
      assert.equal((await inTime('the job', running)).ran, true)
    },
  },
  {
    title: 'the overview shows how many parties of a barrier have arrived',
    behaviours: [98, 122],
    permits: true,
    async run(scene) {
      const first = scene.client().barrier('start', 2).meet({ lease })
      const operator = scene.client()
      await eventually('the first party', async () => (await operator.overview()).barriers[0]?.here === 1)
      assert.deepEqual((await operator.overview()).barriers, [{ name: 'start', parties: 2, here: 1 }])
      await scene.client().barrier('start', 2).meet({ lease })
      await inTime('the first', first)
      await eventually('all have left', async () => (await operator.overview()).barriers[0]?.here === 0)
    },
  },
  {
    title: 'a semaphore is resized by its name, twice, and its users need not change',
    behaviours: [93],
    permits: true,
    async run(scene) {
      const operator = scene.client()
      await rejectsWith('INVALID_ARGUMENT', operator.resizeSemaphore('pool', 3))
      const pool = scene.client().semaphore('pool', 2)
      const hold = await pool.acquire({ lease })
      for (const capacity of [3, 5]) {
        await operator.resizeSemaphore('pool', capacity)
        assert.equal(await pool.available(), capacity - 1)
        await (await scene.client().semaphore('pool', 2).acquire({ wait: 0 })).release()
      }
      await hold.release()
      await operator.resizeSemaphore('pool', 2)
      assert.equal(await pool.available(), 2)
      const lock = await scene.client().mutex('door').acquire({ lease })
      await rejectsWith('CAPACITY_MISMATCH', operator.resizeSemaphore('door', 3))
      await lock.release()
    },
  },
]
