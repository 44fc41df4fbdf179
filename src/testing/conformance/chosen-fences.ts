import assert from 'node:assert/strict'
import { EXCLUSIVE, HIGHEST_FENCE } from '../../contract/constants.js'
import type { Beat, ClaimRequest, Held } from '../../contract/store.js'
import { eventually, pass, rejectsWith } from './checks.js'
import { claimOf, LONG_MS, type RawClient, type Scene, SHORT_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

/** Fences that are surely above those of the store, and within what it believes of a claimant. */
const AHEAD = 5_000_000

/** Beats that say which fences they reserve: what a quorum needs of its members. */
export const chosenFenceCases: readonly CaseSpec[] = casesOf([
  {
    title: 'an exclusive hold gets the fences that its beat names',
    behaviours: [56, 61],
    async run(scene) {
      const raw = scene.raw()
      const own = await take(raw, 'raw:1')
      const first = own + AHEAD
      const held = await ask(raw, 'raw:1', { first, count: 8 })
      assert.equal(held.fence, first)
      assert.equal(held.newest, undefined)
      assert.ok(held.leaseMs > LONG_MS * 0.9)
      assert.equal(await fenceOf(raw, 'raw:1'), first)
      const again = await raw.claim(claimOf('door', 'raw:1'))
      assert.ok(again.status === 'granted' && again.fence === first)
    },
  },
  {
    title: 'fences that a beat has named are given to nobody else',
    behaviours: [56, 57],
    async run(scene) {
      const raw = scene.raw()
      const first = (await take(raw, 'raw:1')) + AHEAD
      await ask(raw, 'raw:1', { first, count: 8 })
      const [more] = await raw.pulse([beatOf('raw:1', { block: 4 })])
      assert.ok(more?.status === 'held' && (more.block ?? 0) >= first + 8)
      const waiting = await raw.claim(claimOf('door', 'raw:2'))
      assert.ok(waiting.status === 'waiting' && waiting.grantsAbove >= first)
      await raw.release('door', 'raw:1')
      const [promoted] = await raw.pulse([beatOf('raw:2')])
      assert.ok(promoted?.status === 'held' && promoted.fence >= (more.block ?? 0) + 4)
      const last = promoted.fence + AHEAD + 99
      await ask(raw, 'raw:2', { first: promoted.fence + AHEAD, count: 100 })
      await raw.release('door', 'raw:2')
      assert.ok((await take(raw, 'raw:3')) > last)
    },
  },
  {
    title: 'a hold that is promoted, stolen or adopted gets a fence above those that a beat has named',
    behaviours: [55, 56],
    async run(scene) {
      const raw = scene.raw()
      const first = (await take(raw, 'raw:1')) + AHEAD
      await ask(raw, 'raw:1', { first, count: 8 })
      const adopts = { id: 'raw:1', fence: first }
      const old = { ...adopts, fence: first - AHEAD }
      const late = await raw.claim(claimOf('door', 'raw:2', { mode: 'adopt', adopts: old }))
      assert.deepEqual(late, { status: 'refused', reason: 'gone' })
      const adopted = await raw.claim(claimOf('door', 'raw:2', { mode: 'adopt', adopts }))
      assert.ok(adopted.status === 'granted' && adopted.fence >= first + 8)
      await ask(raw, 'raw:2', { first: adopted.fence + AHEAD, count: 8 })
      const stolen = await raw.claim(claimOf('door', 'raw:3', { mode: 'steal' }))
      assert.ok(stolen.status === 'granted' && stolen.fence >= adopted.fence + AHEAD + 8)
    },
  },
  {
    title: 'an exclusive hold gets fences that only other resources are beyond',
    behaviours: [56],
    async run(scene) {
      const raw = scene.raw()
      const own = await take(raw, 'raw:1')
      await take(raw, 'raw:2', { resource: 'window' })
      await ask(raw, 'raw:2', { first: own + AHEAD, count: 1 }, 'window')
      assert.equal((await ask(raw, 'raw:1', { first: own + 3, count: 2 })).fence, own + 3)
      await raw.release('door', 'raw:1')
      assert.ok((await take(raw, 'raw:3')) >= own + 5)
    },
  },
  {
    title: 'fences below that of the hold are refused, and nothing but its lease changes',
    behaviours: [58],
    async run(scene) {
      const raw = scene.raw()
      const own = await take(raw, 'raw:1', { leaseMs: LONG_MS / 2 })
      const held = await ask(raw, 'raw:1', { first: own - 1, count: 8 })
      assert.equal(held.fence, own)
      assert.ok((held.newest ?? 0) >= own)
      assert.ok(held.leaseMs > LONG_MS * 0.9)
      assert.equal(await fenceOf(raw, 'raw:1'), own)
      const first = own + AHEAD
      await ask(raw, 'raw:1', { first, count: 8 })
      const late = await ask(raw, 'raw:1', { first: first - 1, count: 1 })
      assert.equal(late.fence, first)
      assert.ok((late.newest ?? 0) >= first)
    },
  },
  {
    title: 'a beat that names fences may be sent again',
    behaviours: [58],
    async run(scene) {
      const raw = scene.raw()
      const own = await take(raw, 'raw:1')
      const fences = { first: own + AHEAD, count: 8 }
      for (let time = 0; time < 3; time++) {
        const held = await ask(raw, 'raw:1', fences)
        assert.equal(held.fence, fences.first)
        assert.equal(held.newest, undefined)
      }
      // Also one that names what the hold has from its grant.
      const next = await take(raw, 'raw:2', { resource: 'window' })
      assert.equal((await ask(raw, 'raw:2', { first: next, count: 1 }, 'window')).fence, next)
    },
  },
  {
    title: 'a reader gets the fences that it names only above those of all readers',
    behaviours: [56],
    async run(scene) {
      const raw = scene.raw()
      const one = await take(raw, 'raw:1', READER)
      const two = await take(raw, 'raw:2', READER)
      assert.ok(two > one)
      for (const first of [one + 1, two]) {
        const refused = await ask(raw, 'raw:1', { first, count: 1 })
        assert.equal(refused.fence, one)
        assert.ok((refused.newest ?? 0) >= two)
      }
      const first = two + AHEAD
      const held = await ask(raw, 'raw:1', { first, count: 8 })
      assert.equal(held.fence, first)
      assert.equal(held.newest, undefined)
      const within = await ask(raw, 'raw:2', { first: first + 7, count: 1 })
      assert.equal(within.fence, two)
      assert.ok((within.newest ?? 0) >= first + 7)
      assert.equal((await ask(raw, 'raw:2', { first: first + 8, count: 1 })).fence, first + 8)
      assert.ok((await take(raw, 'raw:3', READER)) > first + 8)
      // It is the newest no more, and yet keeps what it has.
      assert.equal((await ask(raw, 'raw:1', { first, count: 8 })).fence, first)
    },
  },
  {
    title: 'a writer that has become a reader gets the fences that it names as a reader does',
    behaviours: [56],
    async run(scene) {
      const raw = scene.raw()
      const own = await take(raw, 'raw:1')
      const waiting = await raw.claim(claimOf('door', 'raw:2', READER))
      assert.equal(waiting.status, 'waiting')
      // It still has everything when it names them: the reader behind it comes after.
      const first = own + AHEAD
      const [held] = await raw.pulse([beatOf('raw:1', { permits: 1, fences: { first, count: 8 } })])
      assert.ok(held?.status === 'held' && held.fence === first)
      const [reader] = await raw.pulse([beatOf('raw:2')])
      assert.ok(reader?.status === 'held' && reader.fence >= first + 8)
      const refused = await ask(raw, 'raw:1', { first: first + 1, count: 1 })
      assert.equal(refused.fence, first)
      assert.ok((refused.newest ?? 0) >= reader.fence)
      // Alone again, it is still a reader: the other one had the newer fence.
      await raw.release('door', 'raw:2')
      assert.equal((await ask(raw, 'raw:1', { first: first + 1, count: 1 })).fence, first)
      const above = reader.fence + AHEAD
      assert.equal((await ask(raw, 'raw:1', { first: above, count: 1 })).fence, above)
    },
  },
  {
    title: 'a claim that waits, or is gone, gets no fences by naming them',
    behaviours: [40],
    async run(scene) {
      const raw = scene.raw()
      // Hours ahead: a fence above them could only come from here.
      const first = (await take(raw, 'raw:1', { leaseMs: SHORT_MS })) + 10_000 * AHEAD
      const fences = { first, count: 8 }
      await pass(SHORT_MS * 1.2)
      assert.deepEqual(await raw.pulse([beatOf('raw:1', { fences })]), [{ status: 'gone' }])
      await take(raw, 'raw:2')
      await raw.claim(claimOf('door', 'raw:3'))
      const [waiting, gone] = await raw.pulse([beatOf('raw:3', { fences }), beatOf('raw:1', { fences })])
      assert.equal(waiting?.status, 'waiting')
      assert.deepEqual(gone, { status: 'gone' })
      await raw.release('door', 'raw:2')
      const [promoted] = await raw.pulse([beatOf('raw:3')])
      assert.ok(promoted?.status === 'held' && promoted.fence < first)
    },
  },
  {
    title: 'beats that name fences and others are answered in order',
    behaviours: [39],
    async run(scene) {
      const raw = scene.raw()
      const names = ['door', 'window', 'gate', 'roof']
      const own: number[] = []
      for (const resource of names) own.push(await take(raw, `raw:${resource}`, { resource }))
      const replies = await raw.pulse(
        names.map((resource, index) => {
          const first = (own[index] ?? 0) + (index === 3 ? -1 : AHEAD)
          const plain = beatOf(`raw:${resource}`, { resource })
          return index === 1 ? plain : { ...plain, fences: { first, count: 2 } }
        }),
      )
      const fences = replies.map((reply) => (reply.status === 'held' ? reply.fence : Number.NaN))
      assert.deepEqual(
        fences.map((fence, index) => fence - (own[index] ?? 0)),
        [AHEAD, 0, AHEAD, 0],
      )
      const isRefused = replies.map((reply) => reply.status === 'held' && reply.newest !== undefined)
      assert.deepEqual(isRefused, [false, false, false, true])
    },
  },
  {
    title: 'a beat behind one that names fences for the same claim tells of them',
    behaviours: [39],
    async run(scene) {
      const raw = scene.raw()
      // A line that is known, and a beat that only renews: a store may have a short way for them.
      await take(raw, 'raw:0')
      await raw.release('door', 'raw:0')
      const first = (await take(raw, 'raw:1')) + AHEAD
      const replies = await raw.pulse([beatOf('raw:1', { fences: { first, count: 2 } }), beatOf('raw:1')])
      const fences = replies.map((reply) => (reply.status === 'held' ? reply.fence : Number.NaN))
      assert.deepEqual(fences, [first, first])
    },
  },
  {
    title: 'a hold is broken by the fence that its beat named, and not by the one before',
    behaviours: [26],
    async run(scene) {
      const raw = scene.raw()
      const own = await take(raw, 'raw:1')
      await ask(raw, 'raw:1', { first: own + AHEAD, count: 1 })
      assert.deepEqual(await raw.evict('door', own), [])
      const [broken] = await raw.evict('door', own + AHEAD)
      assert.equal(broken?.fence, own + AHEAD)
      assert.deepEqual(await raw.pulse([beatOf('raw:1')]), [{ status: 'gone' }])
    },
  },
  {
    title: 'a holder that named several fences is told that others wait for it',
    behaviours: [77],
    async run(scene) {
      const [holder, other] = [scene.raw(), scene.raw()]
      if (!(await scene.tellsOfWaiters())) return
      const own = await take(holder, 'holder:1')
      await ask(holder, 'holder:1', { first: own + AHEAD, count: 8 })
      await other.claim(claimOf('door', 'other:1'))
      const [held] = await holder.pulse([beatOf('holder:1')])
      assert.ok(held?.status === 'held' && held.isWanted === true)
      if (!scene.tellsWanted) return
      await eventually('the push', () => holder.pushes.some(({ type }) => type === 'wanted'))
    },
  },
  {
    title: 'fences beyond 2^53 are refused with UNSUPPORTED, and leave the hold as it was',
    behaviours: [60],
    async run(scene) {
      const raw = scene.raw()
      const own = await take(raw, 'raw:1')
      const fences = { first: HIGHEST_FENCE - 6, count: 8 }
      await rejectsWith('UNSUPPORTED', raw.pulse([beatOf('raw:1', { fences })]))
      assert.equal(await fenceOf(raw, 'raw:1'), own)
      await raw.release('door', 'raw:1')
      assert.ok((await take(raw, 'raw:2')) < HIGHEST_FENCE / 2)
    },
  },
])

const READER: Partial<ClaimRequest> = { permits: 1, capacity: EXCLUSIVE }

function casesOf(specs: readonly CaseSpec[]): CaseSpec[] {
  return specs.map((spec) => ({
    ...spec,
    choosesFences: true,
    async run(scene: Scene) {
      assert.ok(scene.takesFences, 'A store that takes no fences: give the subject `fixedFences`')
      await spec.run(scene)
    },
  }))
}

function beatOf(id: string, changes: Partial<Beat> = {}): Beat {
  return { resource: 'door', id, leaseMs: LONG_MS, presenceMs: LONG_MS, ...changes }
}

/** The fence of a new hold. */
async function take(raw: RawClient, id: string, changes: Partial<ClaimRequest> = {}): Promise<number> {
  const reply = await raw.claim(claimOf('door', id, changes))
  assert.ok(reply.status === 'granted')
  return reply.fence
}

async function ask(
  raw: RawClient,
  id: string,
  fences: { first: number; count: number },
  resource = 'door',
): Promise<Held> {
  const [held] = await raw.pulse([beatOf(id, { resource, fences })])
  assert.ok(held?.status === 'held')
  return held
}

async function fenceOf(raw: RawClient, id: string): Promise<number | null | undefined> {
  for await (const line of raw.inspect({ prefix: '', resource: 'door' }))
    for (const claim of line.claims) if (claim.id === id) return claim.fence
  return undefined
}
