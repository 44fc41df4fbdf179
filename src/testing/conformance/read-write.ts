import assert from 'node:assert/strict'
import type { Hold } from '../../primitives/hold.js'
import { assertIncreasing, eventually, inTime, now, pass, rejectsWith, Watched } from './checks.js'
import { claimOf, FORGIVING_MS, IMPATIENT_MS, LONG_MS, RENEWED_MS, SHORT_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

const lease = LONG_MS

export const readWriteCases: readonly CaseSpec[] = [
  {
    title: 'readers are inside together, a writer is alone',
    behaviours: [80],
    async run(scene) {
      const [one, two] = [scene.client().readWrite('config'), scene.client().readWrite('config')]
      const readers = [await one.read.acquire({ lease }), await one.read.acquire({ lease })]
      readers.push(await two.read.acquire({ lease }))
      assert.equal(new Set(readers.map(({ fence }) => fence)).size, 3)
      for (const { permits, isExclusive, isValid } of readers)
        assert.deepEqual([permits, isExclusive, isValid], [1, false, true])
      assert.equal(await two.write.tryAcquire(), null)
      const writer = new Watched(two.write.acquire({ lease }))
      await scene.waiting('config', 1)
      for (const reader of readers) {
        assert.equal(writer.isSettled, false)
        await reader.release()
      }
      const written = await inTime('the writer', writer.promise)
      assert.equal(written.isExclusive, true)
      assert.equal(await one.read.tryAcquire(), null)
      assert.equal(await one.write.tryAcquire(), null)
    },
  },
  {
    title: 'a writer and the mutex of the same name are the same lock',
    behaviours: [80],
    async run(scene) {
      const locks = scene.client()
      const mutex = await locks.mutex('config').acquire()
      assert.equal(await scene.client().readWrite('config').read.tryAcquire(), null)
      assert.equal(await scene.client().readWrite('config').write.tryAcquire(), null)
      await mutex.release()
      const reader = await locks.readWrite('config').read.acquire()
      assert.equal(await scene.client().mutex('config').tryAcquire(), null)
      await reader.release()
      assert.ok(await scene.client().mutex('config').tryAcquire())
    },
  },
  {
    title: 'a waiting writer stops later readers, and those next to each other enter together',
    behaviours: [81, 85],
    async run(scene) {
      const reader = await scene.client().readWrite('config').read.acquire({ lease })
      const order: string[] = []
      const enter = async (side: 'read' | 'write', label: string): Promise<Hold> => {
        const hold = await scene.client().readWrite('config')[side].acquire({ lease, label })
        order.push(label)
        return hold
      }
      const writer = enter('write', 'w1')
      await scene.waiting('config', 1)
      assert.equal(await scene.client().readWrite('config').read.tryAcquire(), null, 'a reader overtook')
      const behind: Promise<Hold>[] = []
      for (const [side, label] of [
        ['read', 'r1'],
        ['read', 'r2'],
        ['read', 'r3'],
        ['write', 'w2'],
        ['read', 'r4'],
      ] as const) {
        behind.push(enter(side, label))
        await scene.waiting('config', 1 + behind.length)
      }
      await reader.release()
      const written = await inTime('the writer', writer)
      assert.deepEqual(order, ['w1'])
      await written.release()
      const three = await inTime('all three readers', Promise.all(behind.slice(0, 3)))
      await pass(30)
      assert.deepEqual(order.slice(1).sort(), ['r1', 'r2', 'r3'])
      const fences = three.map(({ fence }) => fence)
      // On a quorum, readers that enter together agree on their fences in any order.
      if (!scene.countsPermits) fences.sort((a, b) => a - b)
      assertIncreasing([reader.fence, written.fence, ...fences])
      for (const each of three) await each.release()
      await (await inTime('the second writer', behind[3] ?? assert.fail())).release()
      await inTime('the last reader', behind[4] ?? assert.fail())
    },
  },
  {
    title: 'a writer that gives up lets the readers behind it in at once',
    behaviours: [81, 10],
    async run(scene) {
      await scene.client().readWrite('config').read.acquire({ lease })
      const giveUp = new AbortController()
      const writer = scene.client().readWrite('config').write.acquire({ lease, signal: giveUp.signal })
      await scene.waiting('config', 1)
      const reader = scene.client().readWrite('config').read.acquire({ lease })
      await scene.waiting('config', 2)
      giveUp.abort()
      await rejectsWith('ABORTED', writer)
      await inTime('the reader behind', reader)
    },
  },
  {
    title: 'readers and writers of several clients never meet the wrong way',
    behaviours: [80, 15],
    async run(scene) {
      const clients = [scene.client(), scene.client(), scene.client()]
      const inside = { readers: 0, writers: 0, mostReaders: 0 }
      const task = async (index: number): Promise<void> => {
        const config = clients[index % 3]?.readWrite('config') ?? assert.fail()
        for (let time = 0; time < 8; time++) {
          if ((index + time) % 3 === 0) {
            await config.write.run(async () => {
              assert.deepEqual([++inside.writers, inside.readers], [1, 0])
              await pass(1)
              inside.writers--
            })
          } else {
            await config.read.run(async () => {
              inside.mostReaders = Math.max(inside.mostReaders, ++inside.readers)
              assert.equal(inside.writers, 0)
              await pass(1)
              inside.readers--
            })
          }
        }
      }
      await inTime('all tasks', Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map(task)))
      assert.ok(inside.mostReaders > 1, 'readers were never inside together')
      await scene.empty('config')
    },
  },
  {
    title: 'a reader that falls silent loses its own share and no other',
    behaviours: [84, 86],
    async run(scene) {
      const alive = await scene
        .client()
        .readWrite('config')
        .read.acquire({ lease: 2 * RENEWED_MS })
      const silent = scene.raw()
      const request = claimOf('config', 'silent:1', { permits: 1, leaseMs: SHORT_MS })
      assert.equal((await silent.claim(request)).status, 'granted')
      const writer = new Watched(scene.client().readWrite('config').write.acquire({ lease }))
      await scene.waiting('config', 1)
      // The living one's renewals keep its own share, and not the silent one's.
      await eventually(
        'the silent reader is gone',
        async () => (await scene.line('config'))?.holders.length === 1,
      )
      await pass(RENEWED_MS)
      assert.equal(writer.isSettled, false)
      assert.equal(alive.isValid, true)
      const beat = { resource: 'config', id: 'silent:1', leaseMs: LONG_MS, presenceMs: LONG_MS }
      assert.deepEqual(await silent.pulse([beat]), [{ status: 'gone' }])
      await alive.release()
      await inTime('the writer', writer.promise)
    },
  },
  {
    title: 'breakHold takes one reader by its fence, or all of them, and tells each',
    behaviours: [87, 26],
    async run(scene) {
      const operator = scene.client()
      const take = (): Promise<Hold> => scene.client().readWrite('config').read.acquire({ lease: RENEWED_MS })
      const [first, second, third] = [await take(), await take(), await take()]
      const revoked = await operator.breakHold('config', { fence: second.fence })
      assert.deepEqual(
        revoked.map(({ fence, permits }) => [fence, permits]),
        [[second.fence, 1]],
      )
      await eventually('the loss', () => second.signal.aborted)
      assert.ok(first.isValid && third.isValid)
      assert.equal((await operator.breakHold('config')).length, 2)
      await eventually('the other losses', () => first.signal.aborted && third.signal.aborted)
      assert.ok(await operator.readWrite('config').write.tryAcquire())
    },
  },
  {
    title: 'inspect tells readers from writers',
    behaviours: [87, 119],
    async run(scene) {
      const config = scene.client().readWrite('config')
      const other = scene.client().readWrite('config')
      const [one, two] = [await config.read.acquire({ lease }), await other.read.acquire({ lease })]
      const writer = config.write.acquire({ lease, label: 'writer' })
      await scene.waiting('config', 1)
      const line = await scene.line('config')
      assert.deepEqual(
        line?.holders.map(({ permits, fence }) => [permits, fence]),
        [
          [1, one.fence],
          [1, two.fence],
        ],
      )
      assert.equal(line?.waiters[0]?.permits, line?.capacity)
      await one.release()
      await two.release()
      const { fence } = await inTime('the writer', writer)
      const [holder] = (await scene.line('config'))?.holders ?? []
      assert.deepEqual([holder?.fence, holder?.permits, holder?.label], [fence, line?.capacity, 'writer'])
    },
  },
  {
    title: 'a downgrade lets the readers behind in, keeps the fence, and lets no writer between',
    behaviours: [82],
    async run(scene) {
      const writer = await scene.client().readWrite('config').write.acquire({ lease })
      const { fence } = writer
      const reader = scene.client().readWrite('config').read.acquire({ lease })
      await scene.waiting('config', 1)
      const second = new Watched(scene.client().readWrite('config').write.acquire({ lease }))
      await scene.waiting('config', 2)
      await writer.downgrade()
      assert.deepEqual([writer.permits, writer.isExclusive, writer.fence], [1, false, fence])
      const beside = await inTime('the reader', reader)
      await pass(30)
      assert.equal(second.isSettled, false, 'a writer came between')
      assert.equal(writer.isValid, true)
      await writer.downgrade()
      await beside.release()
      await pass(30)
      assert.equal(second.isSettled, false)
      assert.equal(await writer.release(), true)
      await inTime('the second writer', second.promise)
    },
  },
  {
    title: 'a downgrade whose reply is lost is repeated; nobody comes between',
    behaviours: [82],
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: FORGIVING_MS })
      const writer = await locks.readWrite('config').write.acquire({ lease })
      const second = new Watched(scene.client().readWrite('config').write.acquire({ lease }))
      await scene.waiting('config', 1)
      let lost = 0
      store.around = async (call, go) => {
        const reply = await go()
        return call.method === 'pulse' && ++lost === 1 ? new Promise<never>(() => {}) : reply
      }
      await inTime('the downgrade', writer.downgrade())
      assert.ok(store.count('pulse') >= 2)
      assert.deepEqual([writer.isValid, writer.permits, second.isSettled], [true, 1, false])
      const [holder] = (await scene.line('config'))?.holders ?? []
      assert.deepEqual([holder?.fence, holder?.permits], [writer.fence, 1])
    },
  },
  {
    title: 'a downgrade that did not get through is said again by the next renewal',
    behaviours: [82],
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: IMPATIENT_MS })
      const writer = await locks.readWrite('config').write.acquire({ lease: 9000 })
      const reader = scene.client().readWrite('config').read.acquire({ lease })
      await scene.waiting('config', 1)
      store.cut('pulse')
      await rejectsWith('STORE_UNAVAILABLE', writer.downgrade())
      assert.equal(writer.permits, 1, 'it still believes to be alone')
      store.heal()
      await inTime('the reader', reader)
      assert.equal(writer.isValid, true)
    },
  },
  {
    title: 'a reader is passed on as a reader',
    behaviours: [55, 80],
    async run(scene) {
      const writer = await scene.client().readWrite('config').write.acquire({ lease: RENEWED_MS })
      await writer.downgrade()
      const adopted = await scene.client().adopt(await writer.export())
      assert.deepEqual([adopted.permits, adopted.isExclusive], [1, false])
      assert.ok(adopted.fence > writer.fence)
      assert.ok(await scene.client().readWrite('config').read.tryAcquire())
      assert.equal(await scene.client().readWrite('config').write.tryAcquire(), null)
    },
  },
  {
    title: 'kill -9 of one reader frees its share after its lease, and no other',
    behaviours: [84, 86],
    processes: true,
    async run(scene) {
      const [victim, survivor] = await scene.workers(2)
      assert.ok(victim && survivor)
      const claimedAfter = now()
      await victim.call('acquire', 'config', { lease: RENEWED_MS }, { kind: 'read' })
      const kept = await survivor.call('acquire', 'config', { lease: RENEWED_MS }, { kind: 'read' })
      const writer = new Watched(scene.client().readWrite('config').write.acquire({ lease }))
      await scene.waiting('config', 1)
      await victim.kill()
      await eventually('its share', async () => (await scene.line('config'))?.holders.length === 1)
      assert.ok(now() - claimedAfter >= RENEWED_MS, 'freed before its lease was over')
      assert.equal((await survivor.call('look', kept.hold)).isValid, true)
      assert.equal(writer.isSettled, false)
      await survivor.call('release', kept.hold)
      await inTime('the writer', writer.promise)
    },
  },
  {
    title: 'readers and writers of several processes never meet the wrong way',
    behaviours: [80, 85],
    processes: true,
    async run(scene) {
      const workers = await scene.workers(3)
      for (const [index, worker] of workers.entries())
        for (let time = 0; time < 8; time++) {
          const kind = (index + time) % 3 === 0 ? 'write' : 'read'
          await worker.call('queue', 'config', 2, { lease }, 2, { kind })
        }
      const beliefs = async () => (await Promise.all(workers.map((worker) => worker.call('beliefs')))).flat()
      await eventually('all have been inside', async () => {
        const all = await beliefs()
        return all.length === 48 && all.every(({ until }) => until !== null)
      })
      const all = await beliefs()
      for (const writer of all.filter(({ permits }) => permits > 1))
        for (const other of all)
          assert.ok(
            other === writer ||
              (other.until ?? Infinity) <= writer.from ||
              (writer.until ?? Infinity) <= other.from,
            'somebody was inside beside a writer',
          )
    },
  },
]
