import assert from 'node:assert/strict'
import type { Hold } from '../../primitives/hold.js'
import { eventually, rejectsWith, settled } from './checks.js'
import { IMPATIENT_MS, LONG_MS, RENEWED_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

class Failure extends Error {}

const failure = new Failure('the work failed')

/** Every way in which work can fail. */
const FAILING: Readonly<Record<string, () => PromiseLike<never>>> = {
  'throws at once': () => {
    throw failure
  },
  rejects: async () => {
    throw failure
  },
  'gives a thenable that rejects': () => thenable((_resolve, reject) => reject(failure)),
  'gives a thenable that throws': () => ({
    // biome-ignore lint/suspicious/noThenProperty: a thenable is the subject
    then() {
      throw failure
    },
  }),
}

function thenable<T>(
  settle: (resolve: (value: T) => void, reject: (reason: unknown) => void) => void,
): PromiseLike<T> {
  return {
    // biome-ignore lint/suspicious/noThenProperty: a thenable is the subject
    then: (onResolve, onReject) => new Promise<T>(settle).then(onResolve, onReject),
  }
}

export const runCases: readonly CaseSpec[] = [
  {
    title: 'run passes the value through, whatever kind of promise it is',
    behaviours: [27],
    async run(scene) {
      const door = scene.lock('door')
      assert.equal(await door.run(() => 1), 1)
      assert.equal(await door.run(async () => 'two'), 'two')
      assert.equal(await door.run(() => thenable<number>((resolve) => resolve(3))), 3)
      assert.equal(await door.run(() => undefined), undefined)
      await scene.empty('door')
    },
  },
  {
    title: 'run passes the error through, and releases in any case',
    behaviours: [27],
    async run(scene) {
      const door = scene.lock('door')
      for (const [how, work] of Object.entries(FAILING)) {
        const outcome = await settled(door.run(work, { lease: LONG_MS }))
        assert.ok('error' in outcome && outcome.error === failure, `work that ${how}`)
        await scene.empty('door')
      }
    },
  },
  {
    title: 'run rejects with HOLD_LOST if the hold was lost before the work was done',
    behaviours: [27, 42],
    async run(scene) {
      const locks = scene.client()
      const work = async (hold: Hold): Promise<string> => {
        await scene.client().breakHold('door', { fence: hold.fence })
        await eventually('the loss', () => hold.signal.aborted)
        return 'too late'
      }
      const run = scene.lock('door', locks).run(work, { lease: RENEWED_MS })
      const error = await rejectsWith('HOLD_LOST', run)
      assert.equal(error.resource, 'door')
    },
  },
  {
    title: 'run rejects with HOLD_LOST if only the release learns of the loss',
    behaviours: [27, 42],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      store.onPush = () => {}
      const run = scene.lock('door', locks).run(
        async (hold) => {
          await scene.client().breakHold('door', { fence: hold.fence })
          assert.equal(hold.isValid, true)
        },
        { lease: LONG_MS },
      )
      await rejectsWith('HOLD_LOST', run)
    },
  },
  {
    title: 'an error of the work wins over the loss of the hold',
    behaviours: [27],
    async run(scene) {
      const work = async (hold: Hold): Promise<never> => {
        await scene.client().breakHold('door', { fence: hold.fence })
        await eventually('the loss', () => hold.signal.aborted)
        throw failure
      }
      const run = scene.lock('door').run(work, { lease: RENEWED_MS })
      await assert.rejects(run, Failure)
    },
  },
  {
    title: 'a failed release hides neither the value nor the error of the work',
    behaviours: [27, 29],
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: IMPATIENT_MS })
      const value = scene.lock('door', locks).run(
        () => {
          store.cut()
          return 'value'
        },
        { lease: RENEWED_MS },
      )
      assert.equal(await value, 'value')
      store.heal()
      const error = scene.lock('window', locks).run(
        () => {
          store.cut()
          throw failure
        },
        { lease: RENEWED_MS },
      )
      await assert.rejects(error, Failure)
    },
  },
  {
    title: 'the work may release its hold early; run then passes its value through',
    behaviours: [24, 27],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const value = await scene.lock('door', locks).run(async (hold) => {
        assert.equal(await hold.release(), true)
        assert.ok(await scene.lock('door').tryAcquire({ lease: LONG_MS }))
        return 'value'
      })
      assert.equal(value, 'value')
      assert.equal(store.count('release'), 1)
      assert.equal((await scene.line('door'))?.holders.length, 1)
    },
  },
]
