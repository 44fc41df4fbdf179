import assert from 'node:assert/strict'
import { deferred } from '../../base/deferred.js'
import { HoldfastError } from '../../base/errors.js'
import {
  CountingEnv,
  eventually,
  inTime,
  now,
  pass,
  rejectsWith,
  settled,
  throwsWith,
  Watched,
} from './checks.js'
import { FORGIVING_MS, SHORT_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

const WAITERS = 10_000

export const latchCases: readonly CaseSpec[] = [
  {
    title: 'a latch opens for everybody when the last one counts down, and stays open',
    behaviours: [97],
    async run(scene) {
      const [one, two] = [scene.client().latch('ready', 3), scene.client().latch('ready', 3)]
      const waits = [one, one, two].map((latch) => new Watched(latch.wait()))
      assert.deepEqual([await one.countDown(), await two.countDown()], [2, 1])
      assert.equal(await two.count(), 1)
      await pass(30)
      for (const { isSettled } of waits) assert.equal(isSettled, false)
      assert.equal(await one.countDown(), 0)
      await inTime('all who wait', Promise.all(waits.map(({ promise }) => promise)))
      await scene.client().latch('ready', 3).wait({ wait: 0 })
    },
  },
  {
    title: 'counting an open latch down does nothing; one that counts from zero is open',
    behaviours: [97],
    async run(scene) {
      const latch = scene.client().latch('ready', 1)
      for (let time = 0; time < 3; time++) assert.equal(await latch.countDown(), 0)
      assert.equal(await latch.count(), 0)
      await latch.wait({ wait: 0 })
      const none = scene.client().latch('nothing to wait for', 0)
      await inTime('the wait', none.wait())
      assert.equal(await none.countDown(), 0)
    },
  },
  {
    title: 'the wait for a latch ends in time, by a signal, or when the client closes',
    behaviours: [97, 6, 10, 116],
    async run(scene) {
      const env = new CountingEnv()
      const locks = scene.client({ env })
      const latch = locks.latch('ready', 1)
      const startedAt = now()
      await rejectsWith('ACQUIRE_TIMEOUT', latch.wait({ wait: 120 }))
      assert.ok(now() - startedAt >= 120)
      await rejectsWith('ACQUIRE_TIMEOUT', latch.wait({ wait: 0 }))
      const reason = new Error('shutting down')
      assert.equal(
        (await rejectsWith('ABORTED', latch.wait({ signal: AbortSignal.abort(reason) }))).cause,
        reason,
      )
      const giveUp = new AbortController()
      const aborted = rejectsWith('ABORTED', latch.wait({ signal: giveUp.signal }))
      await pass(20)
      giveUp.abort(reason)
      assert.equal((await aborted).cause, reason)
      const closed = rejectsWith('CLOSED', latch.wait())
      const alsoClosed = rejectsWith('CLOSED', latch.wait({ wait: '1h' }))
      await pass(20)
      await locks.close()
      await Promise.all([closed, alsoClosed])
      for (const call of [latch.wait(), latch.count(), latch.countDown(), latch.reset()])
        await rejectsWith('CLOSED', call)
      await eventually('no timer is left', () => env.activeTimers === 0)
    },
  },
  {
    title: 'a wait that gives up leaves the others waiting',
    behaviours: [97],
    async run(scene) {
      const latch = scene.client().latch('ready', 1)
      const stays = latch.wait()
      await rejectsWith('ACQUIRE_TIMEOUT', latch.wait({ wait: 20 }))
      await scene.client().latch('ready', 1).countDown()
      await inTime('the one who stays', stays)
    },
  },
  {
    title: 'many count down at once, and every one counts',
    behaviours: [97],
    async run(scene) {
      const clients = [scene.client(), scene.client(), scene.client()]
      const counts = Array.from({ length: 60 }, (_, index) =>
        clients[index % 3]?.latch('ready', 61).countDown(),
      )
      const left = await inTime('all of them', Promise.all(counts))
      assert.equal(await clients[0]?.latch('ready', 61).count(), 1)
      assert.equal(new Set(left).size, 60, 'two were told the same count')
    },
  },
  {
    title: 'a count-down whose reply is lost counts once',
    behaviours: [97],
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: FORGIVING_MS })
      const others = scene.client().latch('ready', 100)
      for (let round = 1; round <= 4; round++) {
        let isLost = false
        const between = deferred<void>()
        store.around = async (call, go) => {
          const reply = await go()
          if (call.method !== 'write' || isLost) return reply
          isLost = true
          // Others come between the lost reply and the repetition.
          for (let other = 0; other < round; other++) await others.countDown()
          between.resolve()
          return new Promise<never>(() => {})
        }
        const before = await others.count()
        await inTime('the count-down', locks.latch('ready', 100).countDown())
        await inTime('those of the others', between.promise)
        assert.equal(await others.count(), before - 1 - round)
      }
    },
  },
  {
    title: 'a count-down that fails on the way is repeated, and one that cannot get through says so',
    behaviours: [97, 115],
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: FORGIVING_MS })
      const latch = locks.latch('ready', 5)
      let failures = 2
      const failure = new HoldfastError('STORE_UNAVAILABLE', 'On the way', { retryable: true })
      store.around = (call, go) =>
        call.method === 'write' && failures-- > 0 ? Promise.reject(failure) : go()
      assert.equal(await inTime('the count-down', latch.countDown()), 4)
      store.cut()
      await rejectsWith('STORE_UNAVAILABLE', latch.countDown())
      await rejectsWith('STORE_UNAVAILABLE', latch.wait())
      store.heal()
      assert.equal(await latch.count(), 4)
    },
  },
  {
    title: 'reset starts anew for everybody, and closes an open latch',
    behaviours: [97],
    async run(scene) {
      const latch = scene.client().latch('ready', 2)
      await latch.countDown()
      await latch.reset()
      assert.equal(await scene.client().latch('ready', 2).count(), 2)
      await latch.countDown()
      await latch.countDown()
      await latch.wait({ wait: 0 })
      await scene.client().latch('ready', 2).reset()
      await rejectsWith('ACQUIRE_TIMEOUT', latch.wait({ wait: 0 }))
    },
  },
  {
    title: 'a latch that counts from another number is refused, until it is reset',
    behaviours: [97, 91],
    async run(scene) {
      const latch = scene.client().latch('ready', 2)
      await latch.countDown()
      const other = scene.client().latch('ready', 3)
      for (const call of [() => other.count(), () => other.countDown(), () => other.wait()])
        await rejectsWith('CAPACITY_MISMATCH', call())
      assert.equal(await latch.count(), 1)
      const waiting = settled(latch.wait())
      await other.reset()
      assert.equal(await other.count(), 3)
      const outcome = await inTime('the wait for the old number', waiting)
      assert.equal('error' in outcome && (outcome.error as { code?: string }).code, 'CAPACITY_MISMATCH')
    },
  },
  {
    title: 'the count is forgotten when nobody has changed it for its retention',
    behaviours: [97],
    async run(scene) {
      const latch = scene.client().latch('ready', 2, { retention: SHORT_MS })
      const startedAt = now()
      await latch.countDown()
      const count = await latch.count()
      // Where the machine stood still in between, it may be forgotten already.
      assert.ok(count === 1 || now() - startedAt >= SHORT_MS, `${count} after ${now() - startedAt} ms`)
      await eventually('it is as new', async () => (await latch.count()) === 2)
    },
  },
  {
    title: 'wrong arguments of a latch are refused before anything is sent',
    behaviours: [97, 14],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      for (const total of [-1, 1.5, Number.NaN, '2' as unknown as number])
        throwsWith('INVALID_ARGUMENT', () => locks.latch('ready', total))
      throwsWith('INVALID_ARGUMENT', () => locks.latch('', 1))
      throwsWith('INVALID_ARGUMENT', () => locks.latch('ready', 1, { retention: 0 }))
      for (const wait of [-1, Number.NaN, 'soon'])
        await rejectsWith('INVALID_ARGUMENT', locks.latch('ready', 1).wait({ wait: wait as number }))
      assert.equal(store.calls.length, 0)
    },
  },
  {
    title: `${WAITERS} waits for one latch in one client cost a few reads for each change`,
    behaviours: [97, 73],
    alone: true,
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const startedAt = now()
      const all = Promise.all(Array.from({ length: WAITERS }, () => locks.latch('ready', 3).wait()))
      let isOver = false
      void all.then(() => {
        isOver = true
      })
      await eventually('the first read', () => store.count('read') > 0)
      const other = scene.client().latch('ready', 3)
      for (let left = 2; left >= 0; left--) {
        const reads = store.count('read')
        await other.countDown()
        // A read that was under way may have seen the last one.
        await eventually('the change is seen', () => isOver || store.count('read') > reads)
      }
      await inTime('all of them', all)
      // Two for each change and two to begin with; a store that begins to listen late, or anew, has
      // everything read again. And a waiter reads by itself every few seconds.
      const most = 20 + (now() - startedAt) / 1000
      assert.ok(store.count('read') <= most, `${store.count('read')} reads for three changes`)
    },
  },
  {
    title: 'a lost push of the last count-down is noticed all the same',
    behaviours: [97, 78],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      store.onPush = () => {}
      const wait = locks.latch('ready', 1).wait()
      await eventually('the first read', () => store.count('read') > 0)
      await pass(20)
      await scene.client().latch('ready', 1).countDown()
      await inTime('the wait', wait)
    },
  },
  {
    title: 'a wait for a latch survives an outage that is shorter than the time-out',
    behaviours: [97, 115],
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: '5s' })
      let answered = 0
      store.around = async (_call, go) => {
        const answer = await go()
        answered++
        return answer
      }
      const wait = locks.latch('ready', 1).wait()
      await eventually('the first look, and the one that watches', () => answered >= 2)
      store.cut('read')
      const reads = store.count('read')
      await scene.client().latch('ready', 1).countDown()
      await eventually('two reads that failed', () => store.count('read') >= reads + 2)
      store.heal()
      await inTime('the wait', wait)
    },
  },
  {
    title: 'processes count a latch down exactly, and a count stays when its process is killed',
    behaviours: [97],
    processes: true,
    async run(scene) {
      const workers = await scene.workers(3)
      const [victim, ...others] = workers
      await victim?.call('countDown', 'ready', 50, 10)
      await victim?.kill()
      const latch = scene.client().latch('ready', 50)
      assert.equal(await latch.count(), 40)
      const waits = others.map((worker) => worker.call('waitForLatch', 'ready', 50))
      await Promise.all(others.map((worker) => worker.call('countDown', 'ready', 50, 19)))
      assert.equal(await latch.count(), 2)
      await latch.countDown()
      await pass(20)
      assert.equal(await latch.countDown(), 0)
      await inTime('the waits of other processes', Promise.all(waits))
    },
  },
]
