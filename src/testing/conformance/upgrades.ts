import assert from 'node:assert/strict'
import { deferred } from '../../base/deferred.js'
import { inTime, pass, rejectsWith, settled, Watched } from './checks.js'
import { LONG_MS, RENEWED_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

const lease = LONG_MS

/** Re-entry of read-write locks. */
export const upgradeCases: readonly CaseSpec[] = [
  {
    title: 'a flow that reads and asks for writing is refused at once, and goes on reading',
    behaviours: [83],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const config = locks.readWrite('config')
      await config.read.run(async (hold) => {
        const calls = store.calls.length
        await rejectsWith('UPGRADE_REFUSED', config.write.acquire())
        await rejectsWith('UPGRADE_REFUSED', config.write.tryAcquire())
        await rejectsWith(
          'UPGRADE_REFUSED',
          config.write.run(() => assert.fail('two could have done this')),
        )
        await rejectsWith('UPGRADE_REFUSED', locks.mutex('config').acquire())
        await rejectsWith('UPGRADE_REFUSED', locks.all(['config']).acquire())
        assert.equal(store.calls.length, calls)
        assert.equal(hold.isValid, true)
        await config.read.run((again) => assert.equal(again.fence, hold.fence))
      })
      await scene.empty('config')
    },
  },
  {
    title: 'an owner that reads and asks for writing is refused at once, and goes on reading',
    behaviours: [83],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const config = locks.readWrite('config')
      const reading = await config.read.acquire({ owner: 'alice' })
      const calls = store.calls.length
      await rejectsWith('UPGRADE_REFUSED', config.write.acquire({ owner: 'alice' }))
      await rejectsWith('UPGRADE_REFUSED', config.write.tryAcquire({ owner: 'alice' }))
      assert.equal(store.calls.length, calls)
      assert.equal(reading.isValid, true)
      assert.equal(await reading.release(), true)
      assert.ok(await config.write.tryAcquire({ owner: 'alice' }))
    },
  },
  {
    title: 'a downgraded writer cannot write again, by flow or by owner',
    behaviours: [82, 83],
    async run(scene) {
      const config = scene.client().readWrite('config')
      await config.write.run(async (hold) => {
        await config.write.run(() => {})
        await hold.downgrade()
        await rejectsWith('UPGRADE_REFUSED', config.write.acquire())
      })
      const writer = await config.write.acquire({ owner: 'alice' })
      await writer.downgrade()
      await rejectsWith('UPGRADE_REFUSED', config.write.acquire({ owner: 'alice' }))
      assert.ok(await scene.client().readWrite('config').read.tryAcquire())
    },
  },
  {
    title: 'a writer reads inside; a writer inside that reader is refused, since others may read beside it',
    behaviours: [82, 83],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const config = locks.readWrite('config')
      await config.write.run(async (outer) => {
        const calls = store.calls.length
        await config.read.run(async (inner) => {
          assert.deepEqual([inner.fence, inner.permits], [outer.fence, 1])
          await rejectsWith('UPGRADE_REFUSED', config.write.acquire())
          await config.read.run(() => {})
        })
        await config.write.run((again) => assert.equal(again.isExclusive, true))
        assert.equal(store.calls.length, calls)
        assert.equal(await scene.client().readWrite('config').read.tryAcquire(), null)
      })
      await scene.empty('config')
    },
  },
  {
    title: 'an owner that releases its writing and keeps its reading lets others read, and nobody write',
    behaviours: [82],
    async run(scene) {
      const config = scene.client().readWrite('config')
      const writing = await config.write.acquire({ owner: 'alice', lease: 2 * RENEWED_MS })
      const reading = await config.read.acquire({ owner: 'alice' })
      const other = scene.client().readWrite('config').read.acquire({ lease })
      await scene.waiting('config', 1)
      assert.equal(await writing.release(), true)
      await inTime('the other reader', other)
      assert.deepEqual([reading.isValid, reading.fence], [true, writing.fence])
      assert.equal(await scene.client().readWrite('config').write.tryAcquire(), null)
      await rejectsWith('UPGRADE_REFUSED', config.write.acquire({ owner: 'alice' }))
      // Renewed as what it is by now: it does not grow back.
      await pass(RENEWED_MS)
      assert.deepEqual(
        (await scene.line('config'))?.holders.map(({ permits }) => permits),
        [1, 1],
      )
      assert.equal(await reading.release(), true)
    },
  },
  {
    title: 'nested readers run together, a nested writer excludes them',
    behaviours: [69, 80],
    async run(scene) {
      const config = scene.client().readWrite('config')
      const inside = { readers: 0, mostReaders: 0, writers: 0 }
      const read = () =>
        config.read.run(async () => {
          assert.equal(inside.writers, 0)
          inside.mostReaders = Math.max(inside.mostReaders, ++inside.readers)
          await pass(5)
          inside.readers--
        })
      const write = () =>
        config.write.run(async () => {
          assert.deepEqual([++inside.writers, inside.readers], [1, 0])
          await pass(5)
          inside.writers--
        })
      await config.write.run(() => Promise.all([read(), read(), write(), read(), write(), read(), read()]))
      assert.equal(inside.mostReaders, 2)
      await config.read.run(() => Promise.all([read(), read(), read()]))
      assert.equal(inside.mostReaders, 3)
    },
  },
  {
    title: 'a nested reader behind a nested writer that gave up does not wait for the readers before it',
    behaviours: [69, 81],
    async run(scene) {
      const config = scene.client().readWrite('config')
      await config.write.run(async () => {
        const leave = deferred<void>()
        const first = config.read.run(() => leave.promise)
        await pass(0)
        const giveUp = new AbortController()
        const writer = settled(config.write.run(() => assert.fail(), { signal: giveUp.signal }))
        const second = config.read.run(() => 'inside')
        giveUp.abort()
        assert.ok('error' in (await writer))
        assert.equal(await inTime('the second reader', second), 'inside')
        leave.resolve()
        await first
      })
    },
  },
  {
    title: 'a nested try finds out whether it fits: a reader beside readers, a writer beside nobody',
    behaviours: [5, 69],
    async run(scene) {
      const config = scene.client().readWrite('config')
      await config.write.run(async () => {
        const leave = deferred<void>()
        const reader = config.read.run(() => leave.promise)
        await pass(0)
        const beside = await config.read.tryAcquire()
        assert.equal(beside?.isValid, true)
        assert.equal(await config.write.tryAcquire(), null)
        leave.resolve()
        await reader
        await beside?.release()
        const alone = await config.write.tryAcquire()
        assert.equal(alone?.isExclusive, true)
        await alone?.release()
      })
    },
  },
  {
    title: 'a reader in a flow is not stopped by a writer that waits: it is inside already',
    behaviours: [67, 81],
    async run(scene) {
      const config = scene.client().readWrite('config')
      await config.read.run(async () => {
        const writer = new Watched(scene.client().readWrite('config').write.acquire({ lease }))
        await scene.waiting('config', 1)
        await inTime(
          'the nested reader',
          config.read.run(() => {}),
        )
        assert.equal(writer.isSettled, false)
      })
      await scene.waiting('config', 0)
    },
  },
  {
    title: 'a flow inside a semaphore is not inside a lock of the same name',
    behaviours: [91, 69],
    permits: true,
    async run(scene) {
      const locks = scene.client()
      await locks.semaphore('pool', 4).run(async () => {
        await rejectsWith('CAPACITY_MISMATCH', locks.readWrite('pool').read.acquire())
        await rejectsWith('CAPACITY_MISMATCH', locks.mutex('pool').acquire())
        await rejectsWith('CAPACITY_MISMATCH', locks.all(['pool']).acquire())
      })
      await locks.mutex('door').run(async () => {
        await rejectsWith('CAPACITY_MISMATCH', locks.semaphore('door', 4).acquire())
      })
    },
  },
]
