import assert from 'node:assert/strict'
import type { ClaimReply, ClaimRequest } from '../../contract/store.js'
import type { Hold } from '../../primitives/hold.js'
import type { Holdfast } from '../../primitives/holdfast.js'
import { eventually, hasCode, inTime, rejectsWith, settled } from './checks.js'
import { cohort } from './cohort-scene.js'
import { claimOf, LONG_MS, type RawClient, SHORT_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

const lease = LONG_MS
const READER = { permits: 1 }

/** A claim that waits behind at most so many. */
function bounded(id: string, maxWaiters: number, changes: Partial<ClaimRequest> = {}): ClaimRequest {
  return claimOf('door', id, { maxWaiters, ...changes })
}

/** What became of a claim, in a word. */
function outcomeOf(reply: ClaimReply): string {
  return reply.status === 'refused' ? reply.reason : reply.status
}

async function claim(raw: RawClient, request: ClaimRequest): Promise<string> {
  return outcomeOf(await raw.claim(request))
}

/** The ids in the line, in order. */
async function idsIn(raw: RawClient): Promise<string[]> {
  for await (const line of raw.inspect({ prefix: '', resource: 'door' }))
    return line.claims.map(({ id }) => id)
  return []
}

/** Each is served within patience, one after the other. */
async function serveAll(holds: readonly Promise<Hold>[]): Promise<void> {
  await Promise.all(holds.map(async (each) => (await inTime('a waiter', each)).release()))
}

/** A line may have a bound: `maxWaiters`. */
export const boundedLineCases: readonly CaseSpec[] = [
  {
    title: 'a claim that would be one waiter too many is refused, and leaves nothing behind',
    behaviours: [123],
    async run(scene) {
      const raw = scene.raw()
      assert.equal(await claim(raw, bounded('raw:1', 2)), 'granted')
      assert.equal(await claim(raw, bounded('raw:2', 2)), 'waiting')
      assert.equal(await claim(raw, bounded('raw:3', 2)), 'waiting')
      assert.equal(await claim(raw, bounded('raw:4', 2)), 'full')
      assert.equal(await claim(scene.raw(), bounded('other:1', 1)), 'full')
      assert.deepEqual(await idsIn(raw), ['raw:1', 'raw:2', 'raw:3'])
      assert.equal(await raw.release('door', 'raw:4'), false)
      const [reply] = await raw.pulse([
        { resource: 'door', id: 'raw:4', leaseMs: LONG_MS, presenceMs: LONG_MS },
      ])
      assert.equal(reply?.status, 'gone')
      // A higher bound, or none, lets the next one in.
      assert.equal(await claim(raw, bounded('raw:5', 3)), 'waiting')
      assert.equal(await claim(raw, claimOf('door', 'raw:6')), 'waiting')
    },
  },
  {
    title: 'a bound does not refuse what need not wait, nor a try',
    behaviours: [123],
    async run(scene) {
      const raw = scene.raw()
      assert.equal(await claim(raw, bounded('raw:1', 1, READER)), 'granted')
      assert.equal(await claim(raw, bounded('raw:2', 1, READER)), 'granted')
      assert.equal(await claim(raw, bounded('raw:3', 1)), 'waiting')
      assert.equal(await claim(raw, bounded('raw:4', 1, READER)), 'full')
      assert.equal(await claim(raw, bounded('raw:5', 1, { mode: 'try' })), 'busy')
      assert.equal(await claim(raw, bounded('raw:6', 1, { mode: 'steal' })), 'granted')
    },
  },
  {
    title: 'a claim with another capacity is told so, also where the line is full',
    behaviours: [91, 123],
    permits: true,
    async run(scene) {
      const raw = scene.raw()
      const seats = { capacity: 1, permits: 1 }
      assert.equal(await claim(raw, bounded('raw:1', 1, seats)), 'granted')
      assert.equal(await claim(raw, bounded('raw:2', 1, seats)), 'waiting')
      assert.equal(await claim(raw, bounded('raw:3', 1)), 'capacity')
      assert.equal(await claim(raw, bounded('raw:4', 1, seats)), 'full')
    },
  },
  {
    title: 'a claim that is in line keeps its place when it is sent again, however many wait',
    behaviours: [31, 123],
    async run(scene) {
      const raw = scene.raw()
      await raw.claim(bounded('raw:1', 1))
      assert.equal(await claim(raw, bounded('raw:2', 1)), 'waiting')
      assert.equal(await claim(raw, claimOf('door', 'raw:3')), 'waiting')
      assert.equal(await claim(raw, bounded('raw:2', 1)), 'waiting')
      assert.equal(await claim(raw, bounded('raw:3', 1)), 'waiting')
      assert.deepEqual(await idsIn(raw), ['raw:1', 'raw:2', 'raw:3'])
      await raw.release('door', 'raw:1')
      const held = async (): Promise<boolean> => (await claim(raw, bounded('raw:2', 1))) === 'granted'
      await eventually('the grant', held)
    },
  },
  {
    title: 'a waiter that leaves, is cancelled or is granted makes room',
    behaviours: [123],
    async run(scene) {
      const raw = scene.raw()
      await raw.claim(bounded('raw:1', 1))
      await raw.claim(bounded('raw:2', 1))
      assert.equal(await claim(raw, bounded('raw:3', 1)), 'full')
      await raw.release('door', 'raw:2')
      assert.equal(await claim(raw, bounded('raw:4', 1)), 'waiting')
      assert.equal(await claim(raw, bounded('raw:5', 1)), 'full')
      await raw.cancel('door', 'raw:4')
      assert.equal(await claim(raw, bounded('raw:6', 1)), 'waiting')
      await raw.release('door', 'raw:1')
      const granted = async (): Promise<boolean> => (await claim(raw, bounded('raw:6', 1))) === 'granted'
      await eventually('the grant', granted)
      assert.equal(await claim(raw, bounded('raw:7', 1)), 'waiting')
      assert.equal(await claim(raw, bounded('raw:8', 1)), 'full')
    },
  },
  {
    title: 'a waiter that has lapsed does not count',
    behaviours: [19, 123],
    async run(scene) {
      const [raw, other] = [scene.raw(), scene.raw()]
      await raw.claim(bounded('raw:1', 2))
      // In the middle of the line: the store has no reason to remove it.
      await raw.claim(bounded('raw:2', 2))
      assert.equal(await claim(raw, bounded('raw:3', 2, { presenceMs: SHORT_MS })), 'waiting')
      const entered = async (): Promise<boolean> => (await claim(other, bounded('other:1', 2))) === 'waiting'
      await eventually('room in the line', entered)
      assert.equal(await claim(other, bounded('other:2', 2)), 'full')
      await eventually('its end', async () => !(await idsIn(raw)).includes('raw:3'))
    },
  },
  {
    title: 'many claims at once never exceed the bound',
    behaviours: [75, 123],
    async run(scene) {
      const raws = Array.from({ length: 4 }, () => scene.raw())
      const [first] = raws as [RawClient]
      await first.claim(bounded('holder', 5))
      // So that each is heard, and knows the store, before all begin.
      for (const [index, raw] of raws.entries()) await raw.claim(claimOf('window', `w${index}`))
      const outcomes = await Promise.all(
        raws.flatMap((raw, index) =>
          Array.from({ length: 10 }, (_, number) => claim(raw, bounded(`${index}:${number}`, 5))),
        ),
      )
      const waiting = outcomes.filter((outcome) => outcome === 'waiting').length
      assert.ok(waiting >= 1 && waiting <= 5, `${waiting} wait`)
      assert.equal(outcomes.filter((outcome) => outcome === 'full').length, outcomes.length - waiting)
      await eventually('the others have left', async () => (await idsIn(first)).length === 1 + waiting)
    },
  },
  {
    title: 'a request that is one too many fails with LINE_FULL at once; those in line are served',
    behaviours: [123],
    async run(scene) {
      const hold = await scene.lock('door').acquire({ lease })
      const inLine: Promise<Hold>[] = []
      for (const number of [1, 2]) {
        inLine.push(scene.lock('door').acquire({ lease, maxWaiters: 2 }))
        await scene.waiting('door', number)
      }
      const error = await rejectsWith('LINE_FULL', scene.lock('door').acquire({ lease, maxWaiters: 2 }))
      assert.equal(error.retryable, true)
      assert.equal(error.resource, 'door')
      assert.match(error.message, /'door' has 2 waiting already \(maxWaiters\)/)
      const work = async (): Promise<void> => assert.fail('the work was run')
      await rejectsWith('LINE_FULL', scene.lock('door').run(work, { lease, maxWaiters: 1 }))
      const byDefault = scene.client({ maxWaiters: 2 })
      await rejectsWith('LINE_FULL', byDefault.mutex('door').acquire({ lease }))
      await rejectsWith('LINE_FULL', byDefault.all(['door', 'garden']).acquire({ lease }))
      assert.equal(await byDefault.mutex('garden').isLocked(), false)
      assert.equal(await byDefault.mutex('door').tryAcquire(), null)
      inLine.push(byDefault.mutex('door').acquire({ lease, maxWaiters: Infinity }))
      await scene.waiting('door', 3)
      await hold.release()
      await serveAll(inLine)
      await scene.empty('door')
    },
  },
  {
    title: 'requests of one client that share a place count as well, without a call',
    behaviours: [66, 123],
    async run(scene) {
      const hold = await scene.client().mutex('door').acquire({ lease })
      const { locks, store } = cohort(scene)
      const ask = (): Promise<Hold> => locks.mutex('door').acquire({ lease, maxWaiters: 3 })
      const inLine = [ask(), ask(), ask()]
      await scene.waiting('door', 1)
      const calls = store.count('claim')
      await rejectsWith('LINE_FULL', ask())
      await rejectsWith('LINE_FULL', ask())
      assert.equal(store.count('claim'), calls)
      await hold.release()
      await serveAll(inLine)
      await (await inTime('a later request', ask())).release()
    },
  },
  {
    title: 'requests of one client behind its own hold are bounded, and all that wait are served',
    behaviours: [66, 123],
    async run(scene) {
      const { locks } = cohort(scene)
      const ask = (): Promise<Hold> => locks.mutex('door').acquire({ lease, maxWaiters: 2 })
      const hold = await ask()
      const inLine = [ask(), ask()]
      await rejectsWith('LINE_FULL', ask())
      // Others fill the line of the store meanwhile. Those that wait here are not refused any more.
      const raw = scene.raw()
      for (const id of ['raw:1', 'raw:2', 'raw:3']) await raw.claim(claimOf('door', id))
      await hold.release()
      const leaveWhenGranted = async (id: string): Promise<void> => {
        await eventually(
          `the grant of ${id}`,
          async () => (await claim(raw, claimOf('door', id))) === 'granted',
        )
        await raw.release('door', id)
      }
      const others = (async () => {
        for (const id of ['raw:1', 'raw:2', 'raw:3']) await leaveWhenGranted(id)
      })()
      await serveAll(inLine)
      await others
    },
  },
  {
    title: 'requests of one client with and without a bound are each told what is right for them',
    behaviours: [66, 123],
    async run(scene) {
      const hold = await scene.client().mutex('door').acquire({ lease })
      const raw = scene.raw()
      await raw.claim(claimOf('door', 'raw:1'))
      const door = cohort(scene).locks.mutex('door')
      const unbounded = [door.acquire({ lease }), door.acquire({ lease })]
      const refused = [door.acquire({ lease, maxWaiters: 1 }), door.acquire({ lease, maxWaiters: 1 })]
      const patient = door.acquire({ lease, maxWaiters: 50 })
      for (const each of refused) await rejectsWith('LINE_FULL', each)
      await scene.waiting('door', 3)
      await raw.release('door', 'raw:1')
      await hold.release()
      await serveAll([...unbounded, patient])
      await scene.empty('door')
    },
  },
  {
    title: 'readers that come in together are not refused, those behind a writer are',
    behaviours: [80, 81, 123],
    async run(scene) {
      const { read, write } = cohort(scene).locks.readWrite('door')
      const together = Array.from({ length: 20 }, () => read.acquire({ lease, maxWaiters: 2 }))
      const inside = await inTime('the readers', Promise.all(together))
      const later = Array.from({ length: 20 }, () => read.acquire({ lease, maxWaiters: 2 }))
      inside.push(...(await inTime('more readers', Promise.all(later))))
      const writer = scene.client().readWrite('door').write.acquire({ lease })
      await scene.waiting('door', 1)
      // They learn of the writer by an answer of the store.
      const refused = read.acquire({ lease, maxWaiters: 1 })
      await rejectsWith('LINE_FULL', refused)
      const waiting = read.acquire({ lease, maxWaiters: 2 })
      await scene.waiting('door', 2)
      await rejectsWith('LINE_FULL', write.acquire({ lease, maxWaiters: 2 }))
      await Promise.all(inside.map((hold) => hold.release()))
      await serveAll([writer])
      await serveAll([waiting])
      await scene.empty('door')
    },
  },
  {
    title: 'a semaphore counts those that wait for permits, not those that have some',
    behaviours: [88, 123],
    permits: true,
    async run(scene) {
      const ask = (): Promise<Hold> => scene.client().semaphore('door', 3).acquire({ lease, maxWaiters: 1 })
      const inside = [await ask(), await ask(), await ask()]
      const waiter = ask()
      await scene.waiting('door', 1)
      await rejectsWith('LINE_FULL', ask())
      await inside[0]?.release()
      await serveAll([waiter])
      for (const hold of inside.slice(1)) await hold.release()
    },
  },
  {
    title: 'a waiter that was told to wait is not refused later, also when its place was lost',
    behaviours: [123],
    async run(scene) {
      const hold = await scene.client().mutex('door').acquire({ lease })
      const waiter = scene.client().mutex('door').acquire({ lease, maxWaiters: 1 })
      await scene.waiting('door', 1)
      const raw = scene.raw()
      await raw.claim(claimOf('door', 'raw:1'))
      await scene.waiting('door', 2)
      const id = (await scene.line('door'))?.waiters[0]?.id ?? ''
      // As if its place had lapsed: no mark of an operator says that it was cancelled.
      await raw.cancel('door', id)
      await eventually('a new place', async () => {
        const waiters = (await scene.line('door'))?.waiters ?? []
        return waiters.length === 2 && waiters.every((each) => each.id !== id)
      })
      await raw.release('door', 'raw:1')
      await hold.release()
      await serveAll([waiter])
    },
  },
  {
    title: 'a refused request can be repeated, and is served when there is room',
    behaviours: [123],
    async run(scene) {
      const hold = await scene.lock('door').acquire({ lease })
      const first = scene.lock('door').acquire({ lease, maxWaiters: 1 })
      await scene.waiting('door', 1)
      const locks = scene.client()
      const ask = (): Promise<Hold> => scene.lock('door', locks).acquire({ lease, maxWaiters: 1 })
      for (let time = 0; time < 5; time++) await rejectsWith('LINE_FULL', ask())
      await hold.release()
      const holder = await inTime('the first', first)
      const again = ask()
      await scene.waiting('door', 1)
      await holder.release()
      await serveAll([again])
    },
  },
  {
    title: 'a crowd on one lock with a bound: the line stays short, and everybody gets an answer',
    behaviours: [75, 123],
    alone: true,
    async run(scene) {
      const most = 10
      const clients = Array.from({ length: 4 }, () => scene.client({ order: 'strict', maxWaiters: most }))
      const hold = await scene.client().mutex('door').acquire({ lease })
      let refused = 0
      const served: Hold[] = []
      const acquire = async (locks: Holdfast): Promise<void> => {
        const outcome = await settled(locks.mutex('door').acquire({ lease }))
        if ('error' in outcome) {
          hasCode('LINE_FULL', outcome.error)
          refused++
        } else {
          served.push(outcome.value)
          await outcome.value.release()
        }
      }
      const all = clients.flatMap((locks) => Array.from({ length: 50 }, () => acquire(locks)))
      const waiters = async (): Promise<number> => (await scene.line('door'))?.waiters.length ?? 0
      // Awaited in the end; until then a failure must not count as unhandled.
      for (const each of all) each.catch(() => {})
      // Some stores show a claim for a moment before they refuse it.
      let waiting = 0
      await eventually('an answer for each, and a line within its bound', async () => {
        waiting = await waiters()
        return refused + waiting === all.length && waiting <= most
      })
      assert.ok(waiting >= 1, `${waiting} wait`)
      await hold.release()
      await inTime('those in line', Promise.all(all))
      assert.equal(served.length, waiting)
      await scene.empty('door')
    },
  },
]
