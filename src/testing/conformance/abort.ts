import assert from 'node:assert/strict'
import { getEventListeners, setMaxListeners } from 'node:events'
import { deferred } from '../../base/deferred.js'
import { CountingEnv, eventually, hasCode, inTime, pass, rejectsWith, settled } from './checks.js'
import { MUTEX_ALONE } from './guises.js'
import { IMPATIENT_MS, LONG_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

export const abortCases: readonly CaseSpec[] = [
  {
    title: 'a signal that is aborted already rejects with its reason, and nothing is sent',
    behaviours: [9],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const signal = AbortSignal.abort('changed my mind')
      const door = scene.lock('door', locks)
      const attempts = [
        door.acquire({ signal }),
        door.tryAcquire({ signal }),
        door.run(async () => assert.fail('the work was run'), { signal }),
        door.acquire({ signal, owner: 'me' }),
      ]
      for (const attempt of attempts)
        assert.equal((await rejectsWith('ABORTED', attempt)).cause, 'changed my mind')
      assert.equal(store.calls.length, 0)
    },
  },
  {
    title: 'an abort while waiting rejects with the reason, and the place in line is given up',
    behaviours: [10],
    async run(scene) {
      await scene.lock('door').acquire()
      const giveUp = new AbortController()
      const waiter = scene.lock('door').acquire({ signal: giveUp.signal, lease: LONG_MS })
      await scene.waiting('door', 1)
      const reason = new Error('shutting down')
      giveUp.abort(reason)
      assert.equal((await rejectsWith('ABORTED', waiter)).cause, reason)
      await scene.waiting('door', 0)
    },
  },
  {
    title: 'an abort in the middle of a line lets those behind go on',
    behaviours: [10, 74],
    async run(scene) {
      const holder = await scene.lock('door').acquire()
      const giveUp = new AbortController()
      const first = settled(scene.lock('door').acquire({ signal: giveUp.signal, lease: LONG_MS }))
      await scene.waiting('door', 1)
      const second = scene.lock('door').acquire({ lease: LONG_MS })
      await scene.waiting('door', 2)
      giveUp.abort()
      await holder.release()
      await inTime('the one behind the aborted one', second)
      assert.ok('error' in (await first))
    },
  },
  {
    title: 'an abort that races with the grant never leaves the lock held by nobody',
    behaviours: [11],
    async run(scene) {
      for (let round = 0; round < 25; round++) {
        const holder = await scene.lock('door').acquire({ lease: LONG_MS })
        const giveUp = new AbortController()
        const waiter = settled(scene.lock('door').acquire({ signal: giveUp.signal, lease: LONG_MS }))
        await scene.waiting('door', 1)
        const release = holder.release()
        for (let turn = 0; turn < round % 8; turn++) await null
        if (round % 3 === 2) await pass(0)
        giveUp.abort()
        await release
        const outcome = await waiter
        if ('value' in outcome) {
          assert.equal(outcome.value.isValid, true)
          await outcome.value.release()
        } else hasCode('ABORTED', outcome.error)
        await scene.empty('door')
      }
    },
  },
  {
    title: 'a grant whose reply arrives after the caller gave up is given back',
    behaviours: [8, 11, 37],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const replies = deferred<void>()
      store.around = async (call, go) => {
        const reply = await go()
        if (call.method === 'claim') await replies.promise
        return reply
      }
      await rejectsWith('STORE_UNAVAILABLE', scene.lock('door', locks).acquire({ wait: 60, lease: LONG_MS }))
      replies.resolve()
      await scene.empty('door')
    },
  },
  {
    title: 'a claim that arrives after its withdrawal is given back',
    behaviours: [8, 11],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const giveUp = new AbortController()
      const onTheWay = deferred<void>()
      store.around = async (call, go) => {
        if (call.method === 'claim') await onTheWay.promise
        return go()
      }
      const attempt = scene.lock('door', locks).acquire({ signal: giveUp.signal, lease: LONG_MS })
      await eventually('the claim is on its way', () => store.count('claim') > 0)
      giveUp.abort()
      await rejectsWith('ABORTED', attempt)
      await eventually('the withdrawal', () => store.count('release') > 0)
      const withdrawals = store.count('release')
      onTheWay.resolve()
      await eventually('another withdrawal', () => store.count('release') > withdrawals)
      await scene.empty('door')
    },
  },
  {
    title: 'the push of a grant to a caller who has given up gives the lock back',
    behaviours: [8, 11],
    async run(scene) {
      const holder = await scene.lock('door').acquire({ lease: LONG_MS })
      const { locks, store } = scene.intercepted({ storeTimeout: IMPATIENT_MS })
      const giveUp = new AbortController()
      const attempt = scene.lock('door', locks).acquire({ signal: giveUp.signal, lease: LONG_MS })
      // On a slow machine it may have failed before.
      await Promise.race([scene.waiting('door', 1), attempt])
      // The withdrawal is lost, and so is every repetition of it: the store hands the lock to a
      // claim that nobody waits for.
      store.hang('release')
      // Healed by the push itself: on a slow machine a repetition may come later than we wait for
      // the last one.
      store.onPush = (news, deliver) => {
        if (news.type === 'granted') store.heal()
        deliver()
      }
      giveUp.abort()
      await rejectsWith('ABORTED', attempt)
      await pass(1.5 * IMPATIENT_MS)
      assert.equal((await scene.line('door'))?.waiters.length, 1)
      await holder.release()
      await scene.empty('door')
    },
  },
  {
    title: 'a client does not show its own request once it has given it up, though the store still has it',
    behaviours: [10],
    async run(scene) {
      const holder = await scene.lock('door').acquire({ lease: LONG_MS })
      const { locks, store } = scene.intercepted()
      const giveUp = new AbortController()
      const attempt = scene.lock('door', locks).acquire({ signal: giveUp.signal, lease: LONG_MS })
      await scene.waiting('door', 1)
      store.hang('release')
      giveUp.abort()
      await rejectsWith('ABORTED', attempt)
      const waiters: unknown[] = []
      for await (const line of locks.inspect({ prefix: 'door' })) waiters.push(...line.waiters)
      assert.deepEqual(waiters, [])
      assert.equal((await scene.line('door'))?.waiters.length, 1)
      store.heal()
      await holder.release()
      await scene.empty('door')
    },
  },
  {
    title: 'an abort after the grant has no effect on the hold',
    behaviours: [12],
    async run(scene) {
      const giveUp = new AbortController()
      const hold = await scene.lock('door').acquire({ signal: giveUp.signal })
      assert.equal(getEventListeners(giveUp.signal, 'abort').length, 0)
      giveUp.abort()
      await pass(20)
      assert.equal(hold.isValid, true)
      assert.equal(hold.signal.aborted, false)
      assert.equal(await scene.lock('door').tryAcquire(), null)
    },
  },
  {
    title: 'a wait that is over, however it ended, listens to the signal no longer',
    behaviours: [13],
    async run(scene) {
      const { signal } = new AbortController()
      const locks = scene.client()
      const holder = await scene.lock('door', locks).acquire({ owner: 'alice' })
      const options = { signal, wait: 30, lease: LONG_MS }
      await rejectsWith('ACQUIRE_TIMEOUT', scene.lock('door').acquire(options))
      await rejectsWith(
        'ACQUIRE_TIMEOUT',
        scene.lock('door', locks).run(() => {}, options),
      )
      const granted = scene.lock('door').acquire({ signal, lease: LONG_MS })
      const closing = scene.client()
      const turnedAway = settled(scene.lock('door', closing).acquire({ signal }))
      await scene.waiting('door', 2)
      await closing.close()
      await turnedAway
      await holder.release()
      await inTime('the one who waited', granted)
      assert.equal(getEventListeners(signal, 'abort').length, 0)
    },
  },
  {
    title: '200 aborted waiters leave no entries, no listeners and no timers',
    behaviours: [13, 37],
    alone: true,
    notAs: MUTEX_ALONE.load,
    async run(scene) {
      await scene.lock('door').acquire({ lease: LONG_MS })
      const env = new CountingEnv()
      const { locks, store } = scene.intercepted({ env, order: 'strict' })
      const before = env.activeTimers
      const giveUp = new AbortController()
      setMaxListeners(0, giveUp.signal)
      const options = { signal: giveUp.signal, lease: LONG_MS }
      const waiters = Array.from({ length: 200 }, (_, index) =>
        settled(scene.lock('door', locks).acquire(index % 2 === 0 ? options : { ...options, wait: '1h' })),
      )
      await scene.waiting('door', 200)
      giveUp.abort()
      for (const outcome of await Promise.all(waiters))
        hasCode('ABORTED', 'error' in outcome ? outcome.error : undefined)
      await scene.waiting('door', 0)
      assert.equal(getEventListeners(giveUp.signal, 'abort').length, 0)
      await eventually('the withdrawals are over', () => env.activeTimers <= before + 1)
      await assertSilent(store)
    },
  },
]

/**
 * Nothing is sent for claims that were given up. The client's one timer may still fire, and find
 * nothing to do.
 */
async function assertSilent(store: { calls: readonly unknown[] }): Promise<void> {
  const calls = store.calls.length
  await pass(100)
  assert.equal(store.calls.length, calls)
}
