import assert from 'node:assert/strict'
import { MAX_NAME_BYTES } from '../../base/names.js'
import { assertIncreasing, eventually, inTime, now, rejectsWith, throwsWith, Watched } from './checks.js'
import { MINDS_OTHERS, MUTEX_ALONE } from './guises.js'
import { LONG_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

/** Names that some store would fold, cut, split or take for something else. */
const WEIRD_NAMES: readonly string[] = [
  'job',
  'JOB',
  'job ',
  ' job',
  'caf\u00e9',
  'cafe\u0301',
  'job\u0000',
  'job\u0000b',
  ':{}*?[]/%_\\\'"',
  '%',
  '_',
  '*',
  '..',
  '/',
  '{job}',
  'job\n',
  '__proto__',
  'constructor',
  '\u{1f512}',
  'ß',
  'ss',
  'n'.repeat(5000),
  `${'n'.repeat(4999)}m`,
  'é'.repeat(MAX_NAME_BYTES / 2),
]

export const acquireCases: readonly CaseSpec[] = [
  {
    title: 'a free lock is granted, and everybody sees that it is locked',
    behaviours: [1],
    notAs: MINDS_OTHERS,
    async run(scene) {
      const [mine, others] = [scene.lock('door'), scene.lock('door')]
      assert.equal(await mine.isLocked(), false)
      const hold = await mine.acquire({ wait: 0 })
      assert.equal(hold.isValid, true)
      assert.equal(hold.resource, 'door')
      assert.equal(await mine.isLocked(), true)
      assert.equal(await others.isLocked(), true)
      await hold.release()
      assert.equal(await others.isLocked(), false)
    },
  },
  {
    title: 'a second contender waits until the first one releases',
    behaviours: [2, 21],
    async run(scene) {
      const first = await scene.lock('door').acquire()
      const second = new Watched(scene.lock('door').acquire())
      await scene.waiting('door', 1)
      assert.equal(second.isSettled, false)
      assert.equal(await first.release(), true)
      const hold = await inTime('the second hold', second.promise)
      assert.equal(hold.isValid, true)
      assert.equal(first.isValid, false)
    },
  },
  {
    title: 'different names, and different spaces, do not block each other',
    behaviours: [3],
    notAs: MUTEX_ALONE.names,
    async run(scene) {
      const locks = scene.client()
      const names = ['a', 'b', 'ab', 'a:b']
      const holds = await Promise.all(names.map((name) => scene.lock(name, locks).tryAcquire()))
      assert.ok(holds.every((hold) => hold?.isValid))
      const elsewhere = scene.client({ space: 'another' })
      assert.ok(await scene.lock('a', elsewhere).tryAcquire())
      const seen: string[] = []
      for await (const resource of elsewhere.inspect()) seen.push(resource.name)
      assert.deepEqual(seen, ['a'])
    },
  },
  {
    title: 'names are opaque: none collides with another, none is changed',
    behaviours: [4],
    notAs: MUTEX_ALONE.names,
    async run(scene) {
      const locks = scene.client()
      for (const name of WEIRD_NAMES) {
        const hold = await scene.lock(name, locks).tryAcquire()
        assert.ok(hold, `${JSON.stringify(name.slice(0, 40))} is taken for another name`)
      }
      for (const name of WEIRD_NAMES) assert.equal(await scene.lock(name).tryAcquire(), null)
      const seen = new Set<string>()
      for await (const resource of scene.client().inspect()) seen.add(resource.name)
      assert.deepEqual(seen, new Set(WEIRD_NAMES))
    },
  },
  {
    title: 'the names that inspect finds by a prefix begin with exactly that',
    behaviours: [4, 119],
    notAs: MUTEX_ALONE.names,
    async run(scene) {
      const locks = scene.client()
      for (const name of WEIRD_NAMES) await scene.lock(name, locks).acquire()
      for (const prefix of [
        'job',
        'JOB',
        'job\u0000',
        '%',
        '_',
        '*',
        'caf',
        ':{}*?[',
        '__',
        'n'.repeat(5000),
      ]) {
        const seen: string[] = []
        for await (const resource of locks.inspect({ prefix })) seen.push(resource.name)
        const expected = WEIRD_NAMES.filter((name) => name.startsWith(prefix))
        assert.deepEqual(seen.sort(), expected.sort(), `prefix ${JSON.stringify(prefix.slice(0, 40))}`)
      }
    },
  },
  {
    title: 'a name that is too long or not well-formed is refused, never cut',
    behaviours: [4, 14],
    notAs: MUTEX_ALONE.names,
    async run(scene) {
      const { locks, store } = scene.intercepted()
      throwsWith('INVALID_ARGUMENT', () => scene.lock('n'.repeat(MAX_NAME_BYTES + 1), locks))
      throwsWith('INVALID_ARGUMENT', () => scene.lock(`${'é'.repeat(MAX_NAME_BYTES / 2)}x`, locks))
      throwsWith('INVALID_ARGUMENT', () => scene.lock('half \ud83d', locks))
      assert.equal(store.calls.length, 0)
    },
  },
  {
    title: 'tryAcquire on a held lock gives null at once, and leaves nothing behind',
    behaviours: [5],
    async run(scene) {
      const holder = scene.client()
      await scene.lock('door', holder).acquire({ lease: LONG_MS })
      const { locks, store } = scene.intercepted()
      assert.equal(await scene.lock('door', locks).tryAcquire(), null)
      assert.deepEqual(
        store.calls.map((call) => call.method),
        ['claim'],
      )
      assert.equal((await scene.line('door'))?.waiters.length, 0)
      await rejectsWith('ACQUIRE_TIMEOUT', scene.lock('door', locks).acquire({ wait: 0 }))
      await rejectsWith(
        'ACQUIRE_TIMEOUT',
        scene.lock('door', locks).run(async () => {}, { wait: 0 }),
      )
    },
  },
  {
    title: 'the wait ends with ACQUIRE_TIMEOUT, not before its time',
    behaviours: [6],
    async run(scene) {
      await scene.lock('door').acquire()
      const startedAt = now()
      const error = await rejectsWith('ACQUIRE_TIMEOUT', scene.lock('door').acquire({ wait: 150 }))
      assert.ok(now() - startedAt >= 150)
      assert.equal(error.resource, 'door')
      assert.match(error.message, /door/)
    },
  },
  {
    title: 'a timed-out waiter leaves nothing behind and is not granted later',
    behaviours: [8, 76],
    async run(scene) {
      const holder = await scene.lock('door').acquire()
      // What is left behind does not lapse before patience is over.
      const waiter = scene.client({ presence: LONG_MS })
      // Again and again: neither entries nor waiting times may pile up.
      for (let time = 0; time < 10; time++)
        await rejectsWith('ACQUIRE_TIMEOUT', scene.lock('door', waiter).acquire({ wait: 15, lease: LONG_MS }))
      const next = scene.lock('door', waiter).acquire({ lease: LONG_MS })
      await scene.waiting('door', 1)
      await holder.release()
      const hold = await inTime('the one who still waits', next)
      assert.equal(hold.isValid, true)
      await hold.release()
      // A claim that came later than its withdrawal is given back a moment later.
      await scene.empty('door')
    },
  },
  {
    title: 'contenders of several clients are never inside together',
    behaviours: [15, 16],
    async run(scene) {
      const clients = [scene.client(), scene.client(), scene.client()]
      const fences: number[] = []
      let inside = 0
      let count = 0
      const contend = async (index: number): Promise<void> => {
        for (let time = 0; time < 15; time++) {
          await scene.lock('door', clients[index % 3]).run(async (hold) => {
            assert.equal(++inside, 1)
            const before = count
            await null
            count = before + 1
            fences.push(hold.fence)
            inside--
          })
        }
      }
      await Promise.all([0, 1, 2, 3, 4, 5].map(contend))
      assert.equal(count, 90)
      assertIncreasing(fences)
    },
  },
  {
    title: 'two clients of one process contend like two processes',
    behaviours: [16],
    async run(scene) {
      const [one, two] = [scene.client(), scene.client()]
      await scene.lock('door', one).run(async () => {
        // The flow re-enters for its own client only.
        assert.equal(await scene.lock('door', two).tryAcquire(), null)
        await rejectsWith(
          'ACQUIRE_TIMEOUT',
          scene.lock('door', two).run(async () => {}, { wait: 30 }),
        )
        assert.equal(await scene.lock('door', two).tryAcquire({ owner: 'me' }), null)
      })
      // The claim of the one who gave up may still be on its way out.
      await eventually('a free door', async () => (await scene.lock('door', two).tryAcquire()) !== null)
    },
  },
  {
    title: 'the same client acquiring twice does not grant to itself',
    behaviours: [17],
    async run(scene) {
      const door = scene.lock('door')
      const hold = await door.acquire()
      assert.equal(await door.tryAcquire(), null)
      await rejectsWith('ACQUIRE_TIMEOUT', door.acquire({ wait: 40 }))
      assert.equal(hold.isValid, true)
    },
  },
]
