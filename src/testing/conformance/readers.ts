import assert from 'node:assert/strict'
import { systemEnv } from '../../base/env.js'
import type { Hold } from '../../primitives/hold.js'
import type { Lock } from '../../primitives/lock.js'
import { assertIncreasing, inTime, now, pass, rejectsWith, Watched } from './checks.js'
import { sayNothing } from './intercepted-store.js'
import { asksForFences, readers } from './reader-scene.js'
import { LONG_MS, type Scene } from './scene.js'
import type { CaseSpec } from './suite.js'

const lease = LONG_MS
/** At most so many of them share a claim where nobody knows whether somebody waits in the store. */
const BOUND = 64
/**
 * Neighbours come in one after the other for 50 ms where others wait in the store, or nobody knows
 * whether they do.
 */
const LONGER_THAN_A_TURN_MS = 80
/** HOLDFAST_ORDER_ROUNDS=200 for a proof. */
const ORDER_ROUNDS = Number(process.env['HOLDFAST_ORDER_ROUNDS'] ?? 3)

/**
 * Readers of one process that share a claim. These clients use cohorts, whatever the order of the
 * suite is.
 */
export const readersCases: readonly CaseSpec[] = [
  {
    title: 'readers of one process are inside together, each with a greater fence, and hardly ask the store',
    behaviours: [66, 75, 80],
    async run(scene) {
      if (!(await scene.tellsOfWaiters())) return
      const { read, store } = readers(scene)
      const startedAt = now()
      const first = await read.acquire({ lease })
      const all = await inTime(
        'all readers',
        Promise.all(Array.from({ length: 100 }, () => read.acquire({ lease }))),
      )
      assertIncreasing([first, ...all].map(({ fence }) => fence))
      assert.ok(all.every(({ isValid, permits }) => isValid && permits === 1))
      assert.equal((await scene.line('config'))?.holders.length, 1)
      // And a renewal now and then, where a session bounds the lease and the machine is slow.
      const most = 6 + (now() - startedAt) / 2000
      assert.ok(store.calls.length <= most, `${store.calls.length} calls`)
      for (const hold of all) assert.equal(await hold.release(), true)
      assert.equal(store.count('release'), 0)
      assert.equal(first.isValid, true)
      assert.equal(await first.release(), true)
      await scene.empty('config')
    },
  },
  {
    title: 'a writer gets in when the last of the readers that share has left, and not before',
    behaviours: [66, 80],
    async run(scene) {
      const { read } = readers(scene)
      const [one, two] = [await read.acquire({ lease }), await read.acquire({ lease })]
      const writer = new Watched(scene.client().readWrite('config').write.acquire({ lease }))
      await scene.waiting('config', 1)
      assert.equal(await one.release(), true)
      // Once more, by a task that has forgotten it: it takes nothing from its neighbour.
      assert.equal(await one.release(), true)
      await rejectsWith('NOT_HELD', one.extend('1s'))
      await pass(30)
      assert.deepEqual([one.isValid, two.isValid, writer.isSettled], [false, true, false])
      assert.equal(await two.release(), true)
      const hold = await inTime('the writer', writer.promise)
      assertIncreasing([one.fence, two.fence, hold.fence])
      await hold.release()
    },
  },
  {
    title:
      'readers and writers of one process come in as they asked: neither kind passes the lock by the other',
    behaviours: [72, 80, 81],
    async run(scene) {
      const inOrder = ['reader 1', 'reader 2', 'writer 1', 'writer 2', 'reader 3', 'writer 3']
      assert.deepEqual(await serveInTurn(scene), inOrder)
      await scene.empty('config')
    },
  },
  {
    title: 'a writer overtakes no earlier reader of its own process that still has to come in beside others',
    behaviours: [72, 80, 81],
    async run(scene) {
      for (let round = 0; round < ORDER_ROUNDS; round++) {
        await askBesideReader(scene, ['reader', 'reader', 'writer'])
        await askBesideReader(scene, ['reader', 'writer'])
        await askBesideReader(scene, ['reader', 'writer', 'reader', 'reader', 'writer', 'writer', 'reader'])
      }
    },
  },
  {
    title: 'a reader behind a writer of its own process stands in line, and asks for no fences meanwhile',
    behaviours: [66, 72],
    async run(scene) {
      const { read, write, store } = readers(scene)
      sayNothing(store)
      const first = await read.acquire({ lease })
      const writer = write.acquire({ lease })
      await scene.waiting('config', 1)
      const later = read.acquire({ lease })
      await scene.waiting('config', 2)
      assert.equal(store.calls.filter(asksForFences).length, 0)
      await first.release()
      await (await inTime('the writer', writer)).release()
      await (await inTime('the later reader', later)).release()
      await scene.empty('config')
    },
  },
  {
    title: 'a waiting writer stops the later readers of a process that reads already',
    behaviours: [66, 72, 81],
    async run(scene) {
      const { read } = readers(scene)
      const first = await read.acquire({ lease })
      const writer = new Watched(scene.client().readWrite('config').write.acquire({ lease }))
      await scene.waiting('config', 1)
      if (!(await scene.tellsOfWaiters())) await pass(LONGER_THAN_A_TURN_MS)
      const late = Array.from({ length: 10 }, () => new Watched(read.acquire({ lease })))
      await scene.waiting('config', 2)
      assert.ok(!late.some(({ isSettled }) => isSettled), 'a reader overtook the writer')
      await first.release()
      const hold = await inTime('the writer', writer.promise)
      assert.ok(!late.some(({ isSettled }) => isSettled))
      await hold.release()
      const holds = await inTime('the late ones', Promise.all(late.map(({ promise }) => promise)))
      assertIncreasing([first.fence, hold.fence, ...holds.map(({ fence }) => fence)])
      for (const each of holds) await each.release()
      await scene.empty('config')
    },
  },
  {
    title: 'where a store does not say whether others wait, readers share a claim for a turn only',
    behaviours: [66, 72],
    async run(scene) {
      const { read, store } = readers(scene)
      sayNothing(store)
      const all = Array.from({ length: 200 }, () => read.acquire({ lease }))
      await inTime('all of them', Promise.all(all))
      assert.ok(store.count('claim') >= 200 / BOUND, `${store.count('claim')} claims`)
      await pass(LONGER_THAN_A_TURN_MS)
      const before = store.count('claim')
      await inTime('one more', read.acquire({ lease }))
      assert.equal(store.count('claim'), before + 1)
    },
  },
  {
    title: 'in strict order, and with a maxHold, each reader has a claim of its own',
    behaviours: [66],
    async run(scene) {
      const { locks, read } = readers(scene)
      const strict = locks.readWrite('config', { order: 'strict' }).read
      const take = async (count: number, one: () => Promise<Hold>): Promise<void> => {
        const holds = await Promise.all(Array.from({ length: count }, one))
        assert.equal((await scene.line('config'))?.holders.length, count)
        for (const hold of holds) await hold.release()
      }
      await take(3, () => strict.acquire({ lease }))
      await take(3, () => read.acquire({ lease, maxHold: LONG_MS }))
    },
  },
]

/**
 * Readers and writers of one process ask while it writes: in which order they were served then, and
 * how long that took.
 */
async function serveInTurn(scene: Scene): Promise<string[]> {
  const { read, write } = scene.client({ order: 'cohort' }).readWrite('config')
  const holder = await write.acquire({ lease })
  const served: string[] = []
  const ask = (lock: Lock, name: string) => lock.run(() => void served.push(name), { lease })
  const all = [
    ask(read, 'reader 1'),
    ask(read, 'reader 2'),
    ask(write, 'writer 1'),
    ask(write, 'writer 2'),
    ask(read, 'reader 3'),
    ask(write, 'writer 3'),
  ]
  await scene.waiting('config', 1)
  await holder.release()
  await inTime('everybody', Promise.all(all))
  return served
}

/** All ask in one tick, of a new client in a new space, while one of them reads. */
async function askBesideReader(scene: Scene, kinds: readonly ('reader' | 'writer')[]): Promise<void> {
  const space = `order ${systemEnv.id()}`
  const locks = scene.client({ order: 'cohort', space })
  const { read, write } = locks.readWrite('config')
  const holder = await read.acquire({ lease })
  const served: number[] = []
  const all = kinds.map((kind, index) =>
    (kind === 'reader' ? read : write).run(() => void served.push(index), { lease }),
  )
  // So long the first ones come in beside the holder.
  await pass(1)
  await holder.release()
  await inTime('everybody', Promise.all(all))
  assert.deepEqual(
    served,
    kinds.map((_kind, index) => index),
  )
  await locks.close()
}
