import assert from 'node:assert/strict'
import type { Holdfast, HoldfastOptions } from '../../primitives/holdfast.js'
import type { Mutex } from '../../primitives/mutex.js'
import { assertIncreasing, eventually, inTime, pass, rejectsWith } from './checks.js'
import type { InterceptedStore } from './intercepted-store.js'
import { IMPATIENT_MS, LONG_MS, RENEWED_MS, type Scene } from './scene.js'
import type { CaseSpec } from './suite.js'

/** Longer than any case: a lock that goes back before has been asked for. */
const LINGER = '10m'
const LEASE = { lease: LONG_MS }

/** Leases that are kept for a while after the last local hold has gone. */
export const lingerCases: readonly CaseSpec[] = [
  {
    title: 'a lock that lingers is taken again by its process without a call, with a greater fence each time',
    behaviours: [56, 66],
    async run(scene) {
      const { lock, store, isTold } = await lingering(scene)
      if (!isTold) return
      const fences: number[] = []
      await lock.run((hold) => void fences.push(hold.fence), LEASE)
      const calls = store.calls.length
      for (let round = 0; round < 40; round++) {
        await lock.run((hold) => {
          assert.equal(hold.isValid, true)
          fences.push(hold.fence)
        }, LEASE)
      }
      assert.equal(store.calls.length, calls)
      assertIncreasing(fences)
    },
  },
  {
    title: 'a lock that lingers goes to another client as soon as that one begins to wait',
    behaviours: [2, 20, 56],
    async run(scene) {
      const { lock, isTold } = await lingering(scene)
      if (!isTold) return
      const fences: number[] = []
      const other = scene.client({ order: 'cohort' }).mutex('door')
      for (let round = 0; round < 5; round++) {
        for (const each of [lock, other])
          await inTime(
            'the lock',
            each.run((hold) => void fences.push(hold.fence), LEASE),
          )
      }
      assertIncreasing(fences)
    },
  },
  {
    title: 'a try elsewhere is refused by a lock that lingers, and makes it go back',
    behaviours: [5, 77],
    async run(scene) {
      const { lock, isTold } = await lingering(scene)
      if (!isTold) return
      await lock.run(() => {}, LEASE)
      const other = scene.client({ order: 'cohort' }).mutex('door')
      assert.equal(await other.tryAcquire(LEASE), null)
      await scene.empty('door')
      const hold = await other.tryAcquire(LEASE)
      assert.equal(await hold?.release(), true)
    },
  },
  {
    title: 'a lock lingers for its time only',
    behaviours: [21],
    async run(scene) {
      const { locks } = await lingering(scene)
      for (const linger of ['5ms', '50ms'] as const) {
        await locks.mutex('door', { linger }).run(() => {}, LEASE)
        await scene.empty('door')
      }
    },
  },
  {
    title: 'a try in the same process takes a lock that lingers there, also with other options',
    behaviours: [5, 56],
    async run(scene) {
      const { lock, store, isTold } = await lingering(scene)
      if (!isTold) return
      const fences: number[] = []
      await lock.run((hold) => void fences.push(hold.fence), LEASE)
      const calls = store.calls.length
      const same = await lock.tryAcquire(LEASE)
      assert.equal(store.calls.length, calls)
      fences.push(same?.fence ?? 0)
      await same?.release()
      const labelled = await lock.tryAcquire({ ...LEASE, label: 'another' })
      fences.push(labelled?.fence ?? 0)
      assertIncreasing(fences)
      assert.equal(await labelled?.release(), true)
    },
  },
  {
    title:
      'requests with other options wait for a lock that lingers in their process no longer than others do',
    behaviours: [2, 56],
    async run(scene) {
      const { lock, locks, isTold } = await lingering(scene)
      if (!isTold) return
      await lock.run(() => {}, LEASE)
      await inTime(
        'a labelled one',
        lock.run(() => {}, { ...LEASE, label: 'another' }),
      )
      await lock.run(() => {}, LEASE)
      await inTime(
        'one with maxHold',
        lock.run(() => {}, { ...LEASE, maxHold: '1h' }),
      )
      await lock.run(() => {}, LEASE)
      await inTime(
        'a reader',
        locks.readWrite('door').read.run(() => {}, LEASE),
      )
    },
  },
  {
    title: 'close() gives a lock that lingers back, and does not wait for it',
    behaviours: [116],
    async run(scene) {
      const { lock, locks, isTold } = await lingering(scene)
      if (!isTold) return
      await lock.run(() => {}, LEASE)
      await inTime('close()', locks.close({ drain: '1h' }))
      await scene.empty('door')
    },
  },
  {
    title: 'a lock that lingers and is broken is not given out again',
    behaviours: [26, 56],
    async run(scene) {
      const { lock, store, isTold } = await lingering(scene)
      if (!isTold) return
      const before = await lock.run((hold) => hold.fence, LEASE)
      let isLost = false
      store.onPush = (news, deliver) => {
        deliver()
        isLost ||= news.type === 'lost'
      }
      const operator = scene.client()
      await operator.breakHold('door')
      await eventually('the loss', async () => isLost)
      const held = await operator.mutex('door').acquire(LEASE)
      assert.ok(held.fence > before)
      const again = lock.acquire(LEASE)
      await scene.waiting('door', 1)
      await held.release()
      const after = await inTime('the lock', again)
      assert.ok(after.fence > held.fence)
      await after.release()
    },
  },
  {
    title: 'a lock that was extended, exported or downgraded does not linger',
    behaviours: [21],
    async run(scene) {
      const { lock, locks, isTold } = await lingering(scene)
      if (!isTold) return
      await lock.run((hold) => hold.extend(scene.extensionMs), LEASE)
      await scene.empty('door')
      await locks.readWrite('door', { linger: LINGER }).write.run((hold) => hold.downgrade(), LEASE)
      await scene.empty('door')
      const exported = await lock.acquire(LEASE)
      await exported.export()
      await exported.release()
      await scene.empty('door')
    },
  },
  {
    title: 'a lock that lingers is renewed, and is asked for anew when it could not be',
    behaviours: [35, 44, 56],
    async run(scene) {
      const { lock, store, isTold } = await lingering(scene, { storeTimeout: IMPATIENT_MS })
      if (!isTold) return
      const options = { lease: RENEWED_MS }
      const before = await lock.run((hold) => hold.fence, options)
      await eventually('a renewal', async () => store.count('pulse') > 1)
      store.hang('pulse')
      await pass(2 * RENEWED_MS)
      store.heal()
      const after = await inTime(
        'the lock',
        lock.run((hold) => hold.fence, options),
      )
      assert.ok(after > before)
    },
  },
  {
    title: 'a lock lingers only where the store can tell that others wait, and in no strict order',
    behaviours: [14],
    async run(scene) {
      const { locks, store } = await lingering(scene)
      const make = async (): Promise<Mutex> => locks.mutex('door', { linger: '60ms' })
      if (store.capabilities.tellsWanted !== undefined) assert.ok(await make())
      else await rejectsWith('UNSUPPORTED', make())
      const strict = async (): Promise<Mutex> => locks.mutex('door', { linger: '1ms', order: 'strict' })
      await rejectsWith('INVALID_ARGUMENT', strict())
      const negative = async (): Promise<Mutex> => locks.mutex('door', { linger: -1 })
      await rejectsWith('INVALID_ARGUMENT', negative())
    },
  },
]

/**
 * A client whose lock lingers, over a store that counts calls. `isTold`: the store tells it that
 * others wait.
 */
async function lingering(
  scene: Scene,
  options: HoldfastOptions = {},
): Promise<{ lock: Mutex; locks: Holdfast; store: InterceptedStore; isTold: boolean }> {
  const { locks, store } = scene.intercepted({ order: 'cohort', storeTimeout: '30s', ...options })
  await locks.mutex('elsewhere').run(() => {}, LEASE)
  const isTold = await hearsOfWaiters(store)
  return { lock: locks.mutex('door', isTold ? { linger: LINGER } : {}), locks, store, isTold }
}

/** A store that can push does so soon after the first call. */
async function hearsOfWaiters({ capabilities }: InterceptedStore): Promise<boolean> {
  for (let look = 0; look < 40 && capabilities.tellsWanted === false; look++) await pass(50)
  const isTold = capabilities.tellsWanted === true
  // A store that pushes grants and offers to tell must do so, or these cases would show nothing.
  const mustTell = capabilities.tellsWanted !== undefined && capabilities.askNextEveryMs === null
  assert.ok(isTold || !mustTell, 'the store hears pushes, and does not tell of waiters')
  return isTold
}
