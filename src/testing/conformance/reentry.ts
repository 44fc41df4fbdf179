import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { deferred } from '../../base/deferred.js'
import type { Hold } from '../../primitives/hold.js'
import { eventually, inTime, pass, rejectsWith, settled, Watched } from './checks.js'
import { LONG_MS, RENEWED_MS, SHORT_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

export const reentryCases: readonly CaseSpec[] = [
  {
    title: 'a flow enters its own lock again without asking the store; only the last release frees it',
    behaviours: [67],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const door = scene.lock('door', locks)
      await door.run(async (outer) => {
        const calls = store.calls.length
        await scene.lock('door', locks).run(async (inner) => {
          assert.equal(inner.fence, outer.fence)
          await door.run(async (innermost) => assert.equal(innermost.isValid, true))
        })
        const taken = await door.acquire()
        assert.ok(await door.tryAcquire().then((hold) => hold?.release()))
        assert.equal(await taken.release(), true)
        assert.equal(store.calls.length, calls)
        assert.equal(await scene.lock('door').tryAcquire(), null)
        assert.equal(outer.isValid, true)
      })
      await scene.empty('door')
    },
  },
  {
    title: 'deep re-entry neither hangs nor fails',
    behaviours: [67, 68],
    async run(scene) {
      const door = scene.lock('door')
      const descend = (depth: number): Promise<number> =>
        door.run(async () => (depth === 0 ? 0 : 1 + (await descend(depth - 1))))
      assert.equal(await inTime('200 levels', descend(200)), 200)
      await scene.empty('door')
    },
  },
  {
    title: 'parallel nested runs of one flow take turns',
    behaviours: [69],
    async run(scene) {
      const door = scene.lock('door')
      const order: number[] = []
      let inside = 0
      await door.run(async () => {
        const nested = [0, 1, 2, 3, 4].map((number) =>
          door.run(async () => {
            assert.equal(++inside, 1)
            await pass(2)
            order.push(number)
            inside--
          }),
        )
        await Promise.all(nested)
      })
      assert.deepEqual(order, [0, 1, 2, 3, 4])
    },
  },
  {
    title: 'a nested run that may not wait finds its sibling inside, and gives up in time',
    behaviours: [5, 6, 69],
    async run(scene) {
      const door = scene.lock('door')
      await door.run(async () => {
        const leave = deferred<void>()
        const sibling = door.run(() => leave.promise)
        await pass(0)
        assert.equal(await door.tryAcquire(), null)
        await rejectsWith(
          'ACQUIRE_TIMEOUT',
          door.run(async () => {}, { wait: 20 }),
        )
        const giveUp = new AbortController()
        const aborted = rejectsWith('ABORTED', door.acquire({ signal: giveUp.signal }))
        giveUp.abort()
        await aborted
        leave.resolve()
        await sibling
        await door.run(async () => {})
      })
      await scene.empty('door')
    },
  },
  {
    title: 'a run settles after the holds that were taken inside it',
    behaviours: [28, 67],
    async run(scene) {
      const door = scene.lock('door')
      const [taken, leave] = [deferred<Hold>(), deferred<void>()]
      const outer = new Watched(
        door.run(async () => {
          taken.resolve(await door.acquire())
          return 'value'
        }),
      )
      const nested = await taken.promise
      const unawaited = new Watched(
        door.run(async () => {
          void door.run(() => leave.promise)
          await pass(0)
        }),
      )
      await pass(30)
      assert.equal(outer.isSettled, false)
      assert.equal(nested.isValid, true)
      assert.equal(await scene.lock('door').tryAcquire(), null)
      await nested.release()
      assert.equal(await inTime('the outer run', outer.promise), 'value')
      await pass(30)
      assert.equal(unawaited.isSettled, false)
      leave.resolve()
      await inTime('the second run', unawaited.promise)
    },
  },
  {
    title:
      'nested runs that nobody awaits are inside the hold, all of them, or outside with a hold of their own',
    behaviours: [67, 69],
    async run(scene) {
      const door = scene.lock('door')
      const nested: Promise<void>[] = []
      let inside = 0
      const work = async (hold: Hold): Promise<void> => {
        assert.equal(++inside, 1, 'two are inside together')
        assert.equal(hold.isValid, true, 'entered on a hold that is over')
        await pass(5)
        assert.equal(hold.isValid, true, 'the hold ended while the work was inside')
        inside--
      }
      for (let round = 0; round < 3; round++) {
        await door.run(() => {
          for (let number = 0; number < 4; number++) nested.push(door.run(work))
        })
        nested.push(scene.lock('door').run(work))
      }
      await inTime('the nested runs', Promise.all(nested))
      await scene.empty('door')
    },
  },
  {
    title: 'what a run started does not enter again after the run is over',
    behaviours: [69],
    async run(scene) {
      const door = scene.lock('door')
      const goOn = deferred<void>()
      const outcome = deferred<Hold | null>()
      await door.run(() => {
        void goOn.promise.then(() => door.tryAcquire()).then(outcome.resolve, outcome.reject)
      })
      await scene.lock('door').acquire({ lease: LONG_MS })
      goOn.resolve()
      assert.equal(await outcome.promise, null)
    },
  },
  {
    title: 'other tasks of the process are not inside',
    behaviours: [69],
    async run(scene) {
      const door = scene.lock('door')
      const attempts: Promise<Hold | null>[] = []
      const outside = AsyncLocalStorage.snapshot()
      const [entered, leave] = [deferred<void>(), deferred<void>()]
      const run = door.run(async () => {
        attempts.push(outside(() => door.tryAcquire()))
        entered.resolve()
        await leave.promise
      })
      await entered.promise
      attempts.push(door.tryAcquire())
      for (const attempt of attempts) assert.equal(await attempt, null)
      await rejectsWith(
        'ACQUIRE_TIMEOUT',
        door.run(async () => {}, { wait: 20 }),
      )
      leave.resolve()
      await run
    },
  },
  {
    title: 'a waiter that is woken by the release of a run is not inside that run',
    behaviours: [69],
    async run(scene) {
      const door = scene.lock('door')
      const waiting: Promise<void>[] = []
      let inside = 0
      const work = async (hold: Hold): Promise<void> => {
        assert.equal(++inside, 1)
        assert.equal(hold.isValid, true)
        const second = settled(door.tryAcquire({ owner: 'somebody else' }))
        await pass(3)
        assert.deepEqual(await second, { value: null })
        inside--
      }
      for (let number = 0; number < 6; number++) waiting.push(door.run(work))
      await inTime('all of them', Promise.all(waiting))
    },
  },
  {
    title: 're-entry after the hold was lost is a new acquisition with a new fence',
    behaviours: [70],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const door = scene.lock('door', locks)
      const run = door.run(
        async (outer) => {
          store.cut('pulse')
          await eventually('the loss', () => !outer.isValid)
          store.heal()
          const inner = await inTime('the new hold', door.acquire({ lease: LONG_MS }))
          assert.ok(inner.fence > outer.fence)
          assert.equal(inner.isValid, true)
          assert.equal(await inner.release(), true)
        },
        { lease: SHORT_MS },
      )
      await rejectsWith('HOLD_LOST', run)
    },
  },
  {
    title: 'a nested run that waits for its turn while the hold is lost gets a new hold',
    behaviours: [69, 70],
    async run(scene) {
      const locks = scene.client()
      const door = scene.lock('door', locks)
      const work = async (outer: Hold): Promise<void> => {
        const [entered, leave] = [deferred<void>(), deferred<void>()]
        const first = settled(
          door.run(() => {
            entered.resolve()
            return leave.promise
          }),
        )
        await entered.promise
        const second = door.run((hold) => ({ fence: hold.fence, isValid: hold.isValid }))
        await scene.client().breakHold('door')
        await eventually('the loss', () => outer.signal.aborted)
        leave.resolve()
        assert.ok('error' in (await first))
        const { fence, isValid } = await inTime('the second nested run', second)
        assert.ok(isValid && fence > outer.fence)
      }
      await rejectsWith('HOLD_LOST', door.run(work, { lease: RENEWED_MS }))
    },
  },
]
