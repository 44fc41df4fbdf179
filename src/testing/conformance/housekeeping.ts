import assert from 'node:assert/strict'
import { deferred } from '../../base/deferred.js'
import { systemEnv } from '../../base/env.js'
import type { Hold } from '../../primitives/hold.js'
import { CountingEnv, eventually, inTime, pass, rejectsWith, settled, Watched } from './checks.js'
import { chain, collectGarbage } from './flows.js'
import { claimOf, IMPATIENT_MS, LONG_MS, RENEWED_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

export const housekeepingCases: readonly CaseSpec[] = [
  {
    title: 'close turns waiters away with CLOSED, gives holds back and tells their holders',
    behaviours: [116],
    async run(scene) {
      const locks = scene.client()
      const hold = await locks.mutex('door').acquire({ lease: LONG_MS })
      const { signal } = hold
      const waiters = [
        settled(locks.mutex('door').acquire()),
        settled(locks.mutex('door').acquire({ wait: '1h', owner: 'alice' })),
        settled(locks.mutex('door').acquire({ wait: '1h', owner: 'alice' })),
      ]
      await scene.waiting('door', 2)
      const closing = locks.close({ drain: 0 })
      for (const waiter of await Promise.all(waiters))
        assert.equal('error' in waiter && (waiter.error as { code?: string }).code, 'CLOSED')
      await inTime('close', closing)
      await scene.empty('door')
      assert.equal(hold.isValid, false)
      assert.equal(signal.aborted, true)
      assert.equal(await hold.release(), false)
    },
  },
  {
    title: 'close lets running work finish: it stays alone, is renewed, enters again, and is not lost',
    behaviours: [116],
    async run(scene) {
      const locks = scene.client({ drain: '1h' })
      const door = locks.mutex('door')
      const others = scene.client().mutex('door')
      const goOn = deferred<void>()
      const inside = deferred<void>()
      const work = door.run(
        async (hold) => {
          inside.resolve()
          await goOn.promise
          await door.run(() => hold.extend(scene.extensionMs))
          await locks.latch('ready', 1).countDown()
          assert.equal(hold.isValid, true)
          assert.equal(await others.tryAcquire(), null)
          return 'done'
        },
        { lease: RENEWED_MS },
      )
      await inside.promise
      const byHand = await locks.mutex('window').acquire({ lease: LONG_MS })
      const waiting = rejectsWith('CLOSED', door.acquire({ label: 'in line' }))
      await scene.waiting('door', 1)
      const next = new Watched(others.acquire({ lease: LONG_MS }))
      await scene.waiting('door', 2)
      const closing = new Watched(locks.close())
      await waiting
      await rejectsWith('CLOSED', door.acquire())
      await rejectsWith('CLOSED', locks.mutex('gate').tryAcquire())
      await rejectsWith('CLOSED', locks.latch('open', 1).wait())
      // Longer than the lease: it is renewed.
      await pass(RENEWED_MS + 500)
      assert.equal(next.isSettled, false)
      goOn.resolve()
      assert.equal(await inTime('the work', work), 'done')
      await inTime('the next one', next.promise)
      assert.equal(closing.isSettled, false)
      assert.equal(await byHand.release(), true)
      await inTime('close', closing.promise)
      await rejectsWith('CLOSED', locks.latch('ready', 1).countDown())
    },
  },
  {
    title:
      'when the drain is over the signals abort and the holds are given back; a second close shortens it',
    behaviours: [116],
    async run(scene) {
      const locks = scene.client({ drain: '1h' })
      const signals: AbortSignal[] = []
      const runs = ['a', 'b'].map((name) => {
        const work = ({ signal }: Hold) =>
          new Promise<void>((resolve) => {
            signals.push(signal)
            signal.addEventListener('abort', () => resolve())
          })
        return rejectsWith('HOLD_LOST', locks.mutex(name).run(work, { lease: LONG_MS }))
      })
      await eventually('both are inside', () => signals.length === 2)
      const closing = locks.close()
      await pass(50)
      assert.ok(signals.every(({ aborted }) => !aborted))
      await inTime('close', Promise.all([closing, locks.close({ drain: 10 })]))
      await Promise.all(runs)
      for (const name of ['a', 'b']) await scene.empty(name)
    },
  },
  {
    title: 'close inside a run does not wait for itself, and a leader steps down at once',
    behaviours: [99, 116],
    async run(scene) {
      const locks = scene.client({ drain: '1h' })
      const goOn = deferred<void>()
      const other = locks.mutex('other').run(() => goOn.promise, { lease: LONG_MS })
      await eventually('it is inside', async () => (await scene.line('other')) !== undefined)
      const leadership = await locks.election('boss').campaign({ id: 'one', lease: LONG_MS })
      const run = locks.mutex('door').run(
        async (hold) => {
          const closing = new Watched(locks.close())
          assert.equal(leadership.signal.aborted, true)
          await scene.empty('election:boss')
          // What others of this client do is waited for.
          assert.equal(closing.isSettled, false)
          assert.equal(hold.isValid, true)
          goOn.resolve()
          await inTime('close', closing.promise)
        },
        { lease: LONG_MS },
      )
      await rejectsWith('HOLD_LOST', run)
      await other
      for (const name of ['door', 'other']) await scene.empty(name)
    },
  },
  {
    title: 'a closed client refuses everything with CLOSED, and closing again does nothing',
    behaviours: [116],
    async run(scene) {
      const locks = scene.client()
      const door = locks.mutex('door')
      await locks.close()
      await locks.close()
      await locks[Symbol.asyncDispose]()
      await rejectsWith('CLOSED', door.acquire())
      await rejectsWith('CLOSED', door.tryAcquire())
      await rejectsWith(
        'CLOSED',
        door.run(async () => {}),
      )
      await rejectsWith('CLOSED', door.isLocked())
      await rejectsWith('CLOSED', locks.breakHold('door'))
      await rejectsWith('CLOSED', locks.inspect().next())
      await rejectsWith('CLOSED', locks.spaces())
      await rejectsWith('CLOSED', locks.ping())
    },
  },
  {
    title: 'every client can list the spaces that are in use, whatever their names',
    behaviours: [119],
    async run(scene) {
      const spaces = ['shop', 'a:b', '{tag}', 'Ünï/%7B.*?']
      for (const space of spaces) await scene.client({ space }).mutex('door').acquire({ lease: LONG_MS })
      const listed = await scene.client({ space: 'elsewhere' }).spaces()
      assert.deepEqual(
        listed.filter((space) => spaces.includes(space)),
        [...spaces].sort(),
      )
    },
  },
  {
    title: 'a ping is answered, and says how long it took',
    behaviours: [115],
    async run(scene) {
      const ms = await scene.client().ping({ timeout: LONG_MS })
      assert.ok(ms >= 0 && ms <= LONG_MS)
    },
  },
  {
    title: 'a ping to a silent store is refused after its own time, not after the time-out of the store',
    behaviours: [115],
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: '1h' })
      store.hang('pulse')
      await rejectsWith('STORE_UNAVAILABLE', locks.ping({ timeout: IMPATIENT_MS }))
    },
  },
  {
    title: 'close of one client leaves the others alone',
    behaviours: [116],
    async run(scene) {
      const [closing, staying] = [scene.client(), scene.client()]
      const hold = await staying.mutex('door').acquire({ lease: LONG_MS })
      await closing.mutex('window').acquire({ lease: LONG_MS })
      const waiter = staying.mutex('window').acquire({ lease: LONG_MS })
      await scene.waiting('window', 1)
      await closing.close({ drain: 0 })
      await inTime('the waiter', waiter)
      assert.equal(hold.isValid, true)
      await hold.extend('1s')
    },
  },
  {
    title: 'close is bounded also when the store does not answer',
    behaviours: [116],
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: IMPATIENT_MS })
      await locks.mutex('door').acquire({ lease: LONG_MS })
      const waiter = settled(locks.mutex('door').acquire())
      await scene.waiting('door', 1)
      store.hang()
      await inTime('close', settled(locks.close({ drain: 0 })))
      assert.ok('error' in (await waiter))
    },
  },
  {
    title: 'after close no timer is left and nothing more is sent',
    behaviours: [36, 116, 117],
    async run(scene) {
      const env = new CountingEnv()
      // The timer for the next pulse would not be over in time by itself.
      const { locks, store } = scene.intercepted({ env, presence: LONG_MS })
      await locks.mutex('door').acquire({ lease: LONG_MS })
      const waiter = settled(locks.mutex('door').acquire({ lease: LONG_MS, label: 'in line' }))
      await scene.waiting('door', 1)
      await locks.close({ drain: 0 })
      await waiter
      // An answer that came together with the last one may still be on its way.
      await eventually('no timer is left', () => env.activeTimers === 0)
      const calls = store.calls.length
      await pass(500)
      assert.equal(store.calls.length, calls)
    },
  },
  {
    title: 'inspect tells truthfully who holds and who waits, in order',
    behaviours: [119],
    async run(scene) {
      const [one, two] = [scene.client(), scene.client()]
      const hold = await one.mutex('door').acquire({ owner: 'alice', label: 'sweeping', lease: LONG_MS })
      const waiters: Promise<unknown>[] = []
      for (const label of ['first', 'second', 'third']) {
        waiters.push(settled(two.mutex('door').acquire({ label, wait: '1h' })))
        await scene.waiting('door', waiters.length)
      }
      const line = await scene.line('door')
      assert.ok(line)
      const [holder] = line.holders
      assert.ok(holder && line.holders.length === 1)
      assert.equal(holder.owner, 'alice')
      assert.equal(holder.label, 'sweeping')
      assert.equal(holder.pid, process.pid)
      assert.notEqual(holder.host, '')
      assert.equal(holder.fence, hold.fence)
      const wallMs = systemEnv.wallMs()
      assert.ok(holder.since <= new Date(wallMs + 1000) && holder.expires > new Date(wallMs))
      assert.deepEqual(
        line.waiters.map((waiter) => waiter.label),
        ['first', 'second', 'third'],
      )
      assert.equal(new Set(line.waiters.map((waiter) => waiter.owner)).size, 3)
    },
  },
  {
    title: 'inspect shows neither what was released nor what has lapsed',
    behaviours: [119, 21],
    async run(scene) {
      const locks = scene.client()
      await (await locks.mutex('released').acquire()).release()
      await scene.raw().claim(claimOf('lapsed', 'silent:1', { leaseMs: 60 }))
      await pass(80)
      await locks.mutex('held').acquire({ lease: LONG_MS })
      const names: string[] = []
      for await (const resource of locks.inspect()) names.push(resource.name)
      assert.deepEqual(names, ['held'])
    },
  },
  {
    title: 'many names pass by without a held lock being forgotten',
    behaviours: [118],
    alone: true,
    async run(scene) {
      const locks = scene.client()
      const hold = await locks.mutex('held').acquire({ lease: LONG_MS })
      const rival = new Watched(scene.client().mutex('held').acquire({ lease: LONG_MS }))
      const visit = async (number: number): Promise<void> => {
        const visited = await locks.mutex(`name ${number}`).acquire()
        await visited.release()
      }
      // More names than the client remembers fences of.
      for (let number = 0; number < 10_500; number += 500)
        await Promise.all(Array.from({ length: 500 }, (_, index) => visit(number + index)))
      assert.equal(hold.isValid, true)
      assert.equal(rival.isSettled, false)
      await hold.extend(scene.extensionMs)
      assert.equal(await hold.release(), true)
      assert.ok((await inTime('the rival', rival.promise)).fence > hold.fence)
    },
  },
  {
    title: 'nothing of a finished run is kept when each run starts the next one',
    behaviours: [117, 118],
    alone: true,
    async run(scene) {
      const door = scene.client().mutex('door')
      const traces: WeakRef<object>[] = []
      await inTime('the chain', chain(door, 60, traces))
      await eventually('the traces of finished runs are collected', () => {
        collectGarbage()
        return traces.filter((trace) => trace.deref() !== undefined).length <= 5
      })
    },
  },
]
