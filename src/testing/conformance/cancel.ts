import assert from 'node:assert/strict'
import type { ClaimRequest } from '../../contract/store.js'
import { eventually, inTime, pass, rejectsWith, settled, Watched } from './checks.js'
import type { InterceptedStore } from './intercepted-store.js'
import { LONG_MS, RENEWED_MS, type Scene } from './scene.js'
import type { CaseSpec } from './suite.js'

const lease = LONG_MS
/** On a busy machine, a quorum of servers may take seconds to answer. */
const PATIENT = '30s'

/** The id of the only waiter, or of the one with that label. */
async function waiterOf(scene: Scene, name: string, label: string | null = null): Promise<string> {
  const line = await scene.line(name)
  const waiter = line?.waiters.find((each) => label === null || each.label === label)
  assert.ok(waiter, `${label ?? 'nobody'} waits for ${name}`)
  return waiter.id
}

/** The ids under which a client has claimed. */
function claimIds(store: InterceptedStore): ReadonlySet<string> {
  const claims = store.calls.filter(({ method }) => method === 'claim')
  return new Set(claims.map(({ about }) => (about as ClaimRequest).id))
}

/** What an operator does to waiters. */
export const cancelCases: readonly CaseSpec[] = [
  {
    title: 'a waiter that an operator cancels fails with CANCELLED, and does not ask again',
    behaviours: [121],
    async run(scene) {
      const hold = await scene.lock('door').acquire({ lease })
      const waiter = scene.lock('door').acquire({ lease, label: 'stuck' })
      waiter.catch(() => {})
      await scene.waiting('door', 1)
      const operator = scene.client()
      const cancelled = await operator.cancelWaiter('door', await waiterOf(scene, 'door'))
      assert.equal(cancelled?.label, 'stuck')
      await rejectsWith('CANCELLED', inTime('the waiter', waiter))
      await pass(50)
      assert.equal((await scene.line('door'))?.waiters.length, 0)
      assert.equal(hold.isValid, true)
      await hold.release()
      await scene.empty('door')
    },
  },
  {
    title: 'the waiters behind a cancelled one keep their order, and move up',
    behaviours: [72, 121],
    async run(scene) {
      const hold = await scene.lock('door').acquire({ lease })
      const first = scene.lock('door').acquire({ lease, label: 'first' })
      first.catch(() => {})
      await scene.waiting('door', 1)
      const second = scene.lock('door').acquire({ lease, label: 'second' })
      await scene.waiting('door', 2)
      const third = new Watched(scene.lock('door').acquire({ lease, label: 'third' }))
      await scene.waiting('door', 3)
      assert.ok(await scene.client().cancelWaiter('door', await waiterOf(scene, 'door', 'first')))
      await rejectsWith('CANCELLED', inTime('the first', first))
      await hold.release()
      const held = await inTime('the second', second)
      assert.equal(third.isSettled, false)
      await held.release()
      await (await inTime('the third', third.promise)).release()
    },
  },
  {
    title: 'a cancelled writer lets the readers behind it in',
    behaviours: [81, 121],
    async run(scene) {
      const reader = await scene.client().readWrite('book').read.acquire({ lease })
      const writer = scene.client().readWrite('book').write.acquire({ lease, label: 'writer' })
      writer.catch(() => {})
      await scene.waiting('book', 1)
      // No pulse of it is due before patience is over: it is told.
      const behind = scene.client({ presence: LONG_MS }).readWrite('book').read.acquire({ lease })
      await scene.waiting('book', 2)
      assert.ok(await scene.client().cancelWaiter('book', await waiterOf(scene, 'book', 'writer')))
      await rejectsWith('CANCELLED', inTime('the writer', writer))
      await (await inTime('the reader behind', behind)).release()
      await reader.release()
    },
  },
  {
    title: 'a cancelled waiter learns it by its pulse where the push is lost',
    behaviours: [78, 121],
    async run(scene) {
      const hold = await scene.lock('door').acquire({ lease })
      const { locks, store } = scene.intercepted({ presence: 4 * RENEWED_MS, storeTimeout: PATIENT })
      store.onPush = () => {}
      const waiter = scene.lock('door', locks).acquire({ lease })
      waiter.catch(() => {})
      await scene.waiting('door', 1)
      await scene.client().cancelWaiter('door', await waiterOf(scene, 'door'))
      await rejectsWith('CANCELLED', inTime('the waiter', waiter))
      await pass(50)
      assert.equal(claimIds(store).size, 1)
      await hold.release()
    },
  },
  {
    title: 'a place that is gone without a cancel is asked for again',
    behaviours: [78, 121],
    async run(scene) {
      const hold = await scene.lock('door').acquire({ lease })
      const { locks, store } = scene.intercepted({ storeTimeout: PATIENT })
      const waiter = scene.lock('door', locks).acquire({ lease })
      await scene.waiting('door', 1)
      const id = await waiterOf(scene, 'door')
      // As the store does for a waiter that lapsed; nobody has marked it.
      await scene.raw().cancel('door', id)
      await eventually('a second claim', () => claimIds(store).size >= 2)
      await hold.release()
      await (await inTime('the waiter', waiter)).release()
    },
  },
  {
    title: 'a cancel whose answer was lost is repeated, and tells what it did',
    behaviours: [31, 121],
    async run(scene) {
      const hold = await scene.lock('door').acquire({ lease })
      const waiter = scene.lock('door').acquire({ lease })
      waiter.catch(() => {})
      await scene.waiting('door', 1)
      const { locks, store } = scene.intercepted({ storeTimeout: PATIENT })
      let lost = 0
      store.around = async (call, go) => {
        const reply = await go()
        if (call.method !== 'cancel' || lost++ > 0) return reply
        return new Promise<never>(() => {})
      }
      const id = await waiterOf(scene, 'door')
      assert.equal((await inTime('the operator', locks.cancelWaiter('door', id)))?.id, id)
      await rejectsWith('CANCELLED', inTime('the waiter', waiter))
      assert.equal(lost, 2)
      await hold.release()
    },
  },
  {
    title: 'cancel leaves holds alone, and says nothing of claims that do not wait',
    behaviours: [121],
    async run(scene) {
      const operator = scene.client()
      assert.equal(await operator.cancelWaiter('door', 'nobody:1'), null)
      const hold = await scene.lock('door').acquire({ lease })
      const [holder] = (await scene.line('door'))?.holders ?? []
      assert.ok(holder)
      assert.equal(await operator.cancelWaiter('door', holder.id), null)
      const raw = scene.raw()
      assert.deepEqual(await raw.cancel('door', holder.id), [])
      assert.deepEqual(await raw.cancel('window', holder.id), [])
      assert.equal(hold.isValid, true)
      assert.equal(await hold.release(), true)
    },
  },
  {
    title: 'a claim that is granted while it is cancelled is held or cancelled, never neither',
    behaviours: [11, 121],
    async run(scene) {
      const operator = scene.client()
      for (let round = 0; round < 8; round++) {
        const hold = await scene.lock('door').acquire({ lease })
        const waiter = settled(scene.lock('door').acquire({ lease }))
        await scene.waiting('door', 1)
        const id = await waiterOf(scene, 'door')
        const [, cancelled] = await Promise.all([hold.release(), operator.cancelWaiter('door', id)])
        const outcome = await inTime('the waiter', waiter)
        if ('value' in outcome) {
          assert.equal(cancelled, null, 'it holds, and the operator was told that it is cancelled')
          await outcome.value.release()
        } else await rejectsWith('CANCELLED', Promise.reject(outcome.error))
        await scene.empty('door')
      }
    },
  },
  {
    title: 'a claim that stands for several requests of a process fails all of them',
    behaviours: [66, 121],
    async run(scene) {
      const hold = await scene.client().mutex('door').acquire({ lease })
      const locks = scene.client({ order: 'cohort' })
      const waiters = [1, 2, 3].map(() => locks.mutex('door').acquire({ lease }))
      for (const waiter of waiters) waiter.catch(() => {})
      await scene.waiting('door', 1)
      await scene.client().cancelWaiter('door', await waiterOf(scene, 'door'))
      for (const waiter of waiters) await rejectsWith('CANCELLED', inTime('a waiter', waiter))
      const later = locks.mutex('door').acquire({ lease })
      await scene.waiting('door', 1)
      await hold.release()
      await (await inTime('a later request', later)).release()
    },
  },
]
