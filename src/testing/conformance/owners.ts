import assert from 'node:assert/strict'
import type { ClaimRequest } from '../../contract/store.js'
import { eventually, inTime, pass, rejectsWith, settled } from './checks.js'
import { LONG_MS, RENEWED_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

export const ownerCases: readonly CaseSpec[] = [
  {
    title: 'an explicit owner enters again within its client; only the last release frees the lock',
    behaviours: [67, 69],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const door = scene.lock('door', locks)
      const first = await door.acquire({ owner: 'alice' })
      const calls = store.calls.length
      const second = await door.tryAcquire({ owner: 'alice' })
      assert.equal(second?.fence, first.fence)
      assert.equal(await door.run((hold) => hold.fence, { owner: 'alice' }), first.fence)
      assert.equal(store.calls.length, calls)
      assert.equal(await first.release(), true)
      assert.equal(first.isValid, false)
      assert.equal(second?.isValid, true)
      assert.equal(await door.tryAcquire(), null)
      assert.equal(await second?.release(), true)
      await scene.empty('door')
    },
  },
  {
    title: 'another owner, and the same owner of another client, are other claimants',
    behaviours: [67, 69, 16],
    async run(scene) {
      const locks = scene.client()
      await scene.lock('door', locks).acquire({ owner: 'alice' })
      assert.equal(await scene.lock('door', locks).tryAcquire({ owner: 'bob' }), null)
      assert.equal(await scene.lock('door', locks).tryAcquire(), null)
      assert.equal(await scene.lock('door').tryAcquire({ owner: 'alice' }), null)
      assert.ok(await scene.lock('window', locks).tryAcquire({ owner: 'alice' }))
    },
  },
  {
    title: 'acquisitions of one owner at the same time become one claim',
    behaviours: [67],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const holder = await scene.lock('door').acquire()
      const asking = [1, 2, 3].map(() =>
        scene.lock('door', locks).acquire({ owner: 'alice', lease: LONG_MS }),
      )
      await scene.waiting('door', 1)
      await holder.release()
      const holds = await inTime('all of them', Promise.all(asking))
      assert.equal(new Set(holds.map((hold) => hold.fence)).size, 1)
      // One that is asked for again on a slow machine keeps its id.
      const claims = store.calls.filter(({ method }) => method === 'claim')
      assert.equal(new Set(claims.map(({ about }) => (about as ClaimRequest).id)).size, 1)
      for (const hold of holds) assert.equal(await hold.release(), true)
      await scene.empty('door')
    },
  },
  {
    title: 'a second entry that races with the last release gets a hold that is held',
    behaviours: [67],
    async run(scene) {
      const door = scene.lock('door')
      for (let turns = 0; turns < 8; turns++) {
        const first = await door.acquire({ owner: 'alice', lease: LONG_MS })
        const asking = door.acquire({ owner: 'alice', lease: LONG_MS })
        for (let turn = 0; turn < turns; turn++) await null
        const released = first.release()
        const second = await inTime('the second entry', asking)
        assert.equal(await released, true)
        assert.equal(second.isValid, true, 'the hold that was given out is over')
        assert.equal((await scene.line('door'))?.holders[0]?.fence, second.fence)
        assert.equal(await second.release(), true)
        await scene.empty('door')
      }
    },
  },
  {
    title: 'a second acquisition of an owner goes on by itself when the first one gives up',
    behaviours: [67, 10],
    async run(scene) {
      const locks = scene.client()
      const holder = await scene.lock('door').acquire()
      const giveUp = new AbortController()
      const first = settled(scene.lock('door', locks).acquire({ owner: 'alice', signal: giveUp.signal }))
      const second = scene.lock('door', locks).acquire({ owner: 'alice', lease: LONG_MS })
      const hasty = scene.lock('door', locks).acquire({ owner: 'alice', wait: 30 })
      await rejectsWith('ACQUIRE_TIMEOUT', hasty)
      assert.equal(await scene.lock('door', locks).tryAcquire({ owner: 'alice' }), null)
      giveUp.abort()
      assert.ok('error' in (await first))
      await holder.release()
      assert.equal((await inTime('the second', second)).isValid, true)
    },
  },
  {
    title: 'a lost hold is lost for every entry, and the owner starts anew',
    behaviours: [67, 70],
    async run(scene) {
      const door = scene.lock('door')
      const options = { owner: 'alice', lease: RENEWED_MS }
      const [one, two] = [await door.acquire(options), await door.acquire(options)]
      await scene.client().breakHold('door')
      await eventually('the loss', () => one.signal.aborted && two.signal.aborted)
      const anew = await door.acquire({ owner: 'alice', lease: LONG_MS })
      assert.ok(anew.fence > one.fence)
      assert.equal(await one.release(), false)
      assert.equal(await two.release(), false)
      await pass(30)
      assert.equal(anew.isValid, true)
      assert.equal((await scene.line('door'))?.holders[0]?.fence, anew.fence)
    },
  },
  {
    title: 'owners of different acquisitions and clients never coincide unless they are given',
    behaviours: [71],
    async run(scene) {
      const clients = [scene.client(), scene.client(), scene.client()]
      for (const [index, locks] of clients.entries())
        for (const name of ['a', 'b', 'c']) await scene.lock(`${name}${index}`, locks).acquire()
      const owners: string[] = []
      for await (const resource of scene.client().inspect())
        owners.push(...resource.holders.map((holder) => holder.owner))
      assert.equal(owners.length, 9)
      assert.equal(new Set(owners).size, 9)
    },
  },
]
