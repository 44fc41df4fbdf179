import assert from 'node:assert/strict'
import { assertIncreasing, eventually, inTime, pass, settled } from './checks.js'
import { NEEDS_REENTRY } from './guises.js'
import { LONG_MS, RENEWED_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

export const fenceCases: readonly CaseSpec[] = [
  {
    title: 'the fence grows with every new hold, however the one before ended',
    behaviours: [56, 57],
    async run(scene) {
      const fences: number[] = []
      const take = async (): Promise<void> => {
        const hold = await inTime('a hold', scene.lock('door').acquire({ lease: LONG_MS }))
        fences.push(hold.fence)
        await hold.release()
      }
      await take()
      await take()
      const tried = await scene.lock('door').tryAcquire()
      fences.push(tried?.fence ?? Number.NaN)
      await tried?.release()
      // Long enough for a slow quorum to grant it.
      const lapsed = await scene.raw().claim(scene.claimOf('door', 'silent:1', { leaseMs: 1000 }))
      fences.push(lapsed.status === 'granted' ? lapsed.fence : Number.NaN)
      await take()
      const broken = await scene.lock('door').acquire()
      fences.push(broken.fence)
      await scene.client().breakHold('door', { fence: broken.fence })
      await take()
      const passed = await scene.lock('door').acquire()
      const adopted = await scene.client().adopt(await passed.export())
      fences.push(passed.fence, adopted.fence)
      await adopted.release()
      await take()
      assertIncreasing(fences)
    },
  },
  {
    title: 'the fence grows also when the hold before was handed off and lapsed unread',
    behaviours: [56],
    async run(scene) {
      const holder = await scene.lock('door').acquire({ lease: LONG_MS })
      const raw = scene.raw()
      await raw.claim(scene.claimOf('door', 'silent:1', { presenceMs: 6000 }))
      const last = scene.lock('door').acquire({ lease: RENEWED_MS, label: 'last' })
      await scene.inLine('door', 'last')
      await holder.release()
      let promoted = Number.NaN
      await eventually('the promotion', async () => {
        const found = (await scene.line('door'))?.holders.find(({ label }) => label !== 'last')
        promoted = found?.fence ?? Number.NaN
        return found !== undefined
      })
      const hold = await inTime('the one behind', last)
      assertIncreasing([holder.fence, promoted, hold.fence])
    },
  },
  {
    title: 'the fence does not fall when nothing is left that remembers the name',
    behaviours: [57],
    async run(scene) {
      const fences: number[] = []
      for (let time = 0; time < 3; time++) {
        const locks = scene.client()
        const hold = await scene.lock('door', locks).acquire()
        fences.push(hold.fence)
        await hold.release()
        await locks.close()
        await scene.empty('door')
      }
      assertIncreasing(fences)
    },
  },
  {
    title: 're-entry and renewal keep the fence',
    behaviours: [58],
    notAs: NEEDS_REENTRY,
    async run(scene) {
      const door = scene.lock('door')
      await door.run(
        async (hold) => {
          const { fence } = hold
          await door.run((inner) => assert.equal(inner.fence, fence))
          await hold.extend(scene.extensionMs)
          assert.equal(hold.fence, fence)
          assert.equal((await scene.line('door'))?.holders[0]?.fence, fence)
        },
        { lease: RENEWED_MS },
      )
    },
  },
  {
    title: 'acquisitions that fail never lower the fence',
    behaviours: [59],
    async run(scene) {
      const first = await scene.lock('door').acquire()
      for (let time = 0; time < 5; time++) {
        assert.equal(await scene.lock('door').tryAcquire(), null)
        // With ACQUIRE_TIMEOUT, or with STORE_UNAVAILABLE where the store is slow: both fail.
        assert.ok('error' in (await settled(scene.lock('door').acquire({ wait: 5 }))))
      }
      await first.release()
      const second = await scene.lock('door').acquire()
      assertIncreasing([first.fence, second.fence])
    },
  },
  {
    title: 'the fence is a safe integer, there before the work, and what the store recorded',
    behaviours: [60, 61],
    async run(scene) {
      await scene.lock('door').run(async (hold) => {
        assert.ok(Number.isSafeInteger(hold.fence) && hold.fence > 0)
        assert.equal((await scene.line('door'))?.holders[0]?.fence, hold.fence)
      })
      const holder = await scene.lock('door').acquire()
      const waiter = scene.lock('door').acquire({ lease: LONG_MS })
      await scene.waiting('door', 1)
      await holder.release()
      const { fence } = await waiter
      assert.ok(Number.isSafeInteger(fence))
      assert.equal((await scene.line('door'))?.holders[0]?.fence, fence)
    },
  },
  {
    title: 'the fence is above what the claimant has seen before, even if the store has forgotten it',
    behaviours: [57, 65],
    async run(scene) {
      const raw = scene.raw()
      const first = await raw.claim(scene.claimOf('door', 'raw:1'))
      assert.ok(first.status === 'granted')
      await raw.release('door', 'raw:1')
      // Ahead of the store by less than the permitted skew: believed.
      const floor = first.fence + 5_000_000
      const second = await raw.claim(scene.claimOf('door', 'raw:2', { floor }))
      assert.ok(second.status === 'granted' && second.fence > floor)
      await raw.release('door', 'raw:2')
      // By far too much: a claimant cannot push the fences of everybody out of range.
      const third = await raw.claim(scene.claimOf('door', 'raw:3', { floor: Number.MAX_SAFE_INTEGER - 1 }))
      assert.ok(third.status === 'granted' && third.fence > second.fence)
      assert.ok(third.fence < Number.MAX_SAFE_INTEGER / 2)
    },
  },
  {
    title: 'a block of fences belongs to its hold alone',
    behaviours: [56],
    async run(scene) {
      const raw = scene.raw()
      const first = await raw.claim(scene.claimOf('door', 'raw:1', { block: 10 }))
      assert.ok(first.status === 'granted')
      const beat = { resource: 'door', id: 'raw:1', leaseMs: LONG_MS, presenceMs: LONG_MS, block: 5 }
      const [more] = await raw.pulse([beat])
      assert.ok(more?.status === 'held' && (more.block ?? 0) >= first.fence + 10)
      await raw.release('door', 'raw:1')
      assert.deepEqual(await raw.pulse([beat]), [{ status: 'gone' }])
      const second = await raw.claim(scene.claimOf('door', 'raw:2'))
      assert.ok(second.status === 'granted' && second.fence >= (more.block ?? 0) + 5)
    },
  },
  {
    title: 'a stale push with an old fence does not change the fence of a hold',
    behaviours: [58, 79],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const late: (() => void)[] = []
      store.onPush = (_news, deliver) => {
        late.push(deliver)
        deliver()
      }
      const holder = await scene.lock('door').acquire()
      const waiter = scene.lock('door', locks).acquire({ lease: LONG_MS })
      await scene.waiting('door', 1)
      await holder.release()
      const hold = await waiter
      const { fence } = hold
      for (const deliver of late) deliver()
      await pass(20)
      assert.equal(hold.fence, fence)
      assert.equal(hold.isValid, true)
      await hold.release()
      const next = await scene.lock('door').acquire({ lease: LONG_MS })
      for (const deliver of late) deliver()
      await eventually('the stray grant is given back', () => store.count('release') >= 2)
      assert.equal((await scene.line('door'))?.holders[0]?.fence, next.fence)
    },
  },
]
