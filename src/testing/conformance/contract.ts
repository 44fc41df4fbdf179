import assert from 'node:assert/strict'
import { leaseForMs } from '../../contract/validity.js'
import { eventually, now, pass, rejectsWith } from './checks.js'
import { claimOf, LONG_MS, type RawClient, SHORT_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

function beatOf(id: string, changes: { leaseMs?: number; presenceMs?: number; permits?: number } = {}) {
  return { resource: 'door', id, leaseMs: LONG_MS, presenceMs: LONG_MS, ...changes }
}

/**
 * What the store itself says of a claim, without changing its deadline by more than a millisecond.
 */
async function leftOf(raw: RawClient, id: string): Promise<number> {
  for await (const line of raw.inspect({ prefix: '', resource: 'door' }))
    for (const claim of line.claims) if (claim.id === id) return claim.expiresInMs
  return 0
}

export const contractCases: readonly CaseSpec[] = [
  {
    title: 'the same claim sent again gives its present answer and no second place',
    behaviours: [31],
    async run(scene) {
      const raw = scene.raw()
      const first = await raw.claim(claimOf('door', 'raw:1'))
      const again = await raw.claim(claimOf('door', 'raw:1'))
      assert.ok(first.status === 'granted' && again.status === 'granted')
      assert.equal(again.fence, first.fence)
      assert.equal((await raw.claim(claimOf('door', 'raw:2'))).status, 'waiting')
      assert.equal((await raw.claim(claimOf('door', 'raw:2'))).status, 'waiting')
      assert.equal((await scene.line('door'))?.waiters.length, 1)
      await raw.release('door', 'raw:1')
      // A quorum may agree on it a moment later.
      await eventually('the promotion', async () => {
        const { status } = await raw.claim(claimOf('door', 'raw:2'))
        return status === 'granted'
      })
    },
  },
  {
    title: 'promotion refreshes nothing: only the own pulse of a claim starts its lease',
    behaviours: [19, 33, 54],
    async run(scene) {
      const raw = scene.raw()
      await raw.claim(claimOf('door', 'raw:1'))
      const presenceMs = 20_000
      await raw.claim(claimOf('door', 'raw:2', { presenceMs }))
      const answeredAt = now()
      await pass(200)
      await raw.release('door', 'raw:1')
      const askedAt = now()
      const leftMs = await leftOf(raw, 'raw:2')
      const mostMs = answeredAt + presenceMs - askedAt
      // The other members of a quorum are asked for a little more, as their clocks may be faster.
      const most = scene.countsPermits ? mostMs : leaseForMs(mostMs)
      assert.ok(leftMs > 0 && leftMs <= most, `${leftMs} ms are left`)
      const startsLease = async (): Promise<boolean> => {
        const [held] = await raw.pulse([beatOf('raw:2')])
        return held?.status === 'held' && held.leaseMs > LONG_MS * 0.9
      }
      // On a quorum, the votes of a majority may still be on their way.
      if (!scene.countsPermits) await eventually('a majority', startsLease)
      assert.ok(await startsLease())
    },
  },
  {
    title: 'a pulse answers for each beat in order, and never shortens',
    behaviours: [39, 40],
    async run(scene) {
      const raw = scene.raw()
      await raw.claim(claimOf('door', 'raw:1'))
      await raw.claim(claimOf('door', 'raw:2'))
      await raw.claim(claimOf('door', 'raw:3'))
      const ids = ['raw:3', 'raw:9', 'raw:1', 'raw:2']
      const replies = await raw.pulse(ids.map((id) => beatOf(id, { leaseMs: 20, presenceMs: 20 })))
      assert.deepEqual(
        replies.map((reply) => reply.status),
        ['waiting', 'gone', 'held', 'waiting'],
      )
      const isNext = replies.map((reply) => reply.status === 'waiting' && reply.isNext)
      assert.deepEqual(isNext, [false, false, false, true])
      assert.ok((await leftOf(raw, 'raw:1')) > LONG_MS / 2)
      assert.ok((await leftOf(raw, 'raw:2')) > LONG_MS / 2)
      assert.deepEqual(await raw.pulse([]), [])
    },
  },
  {
    title: 'the one who is next learns when the hold ahead would lapse',
    behaviours: [18],
    async run(scene) {
      const raw = scene.raw()
      await raw.claim(claimOf('door', 'raw:1', { leaseMs: 20_000 }))
      const reply = await raw.claim(claimOf('door', 'raw:2'))
      assert.ok(reply.status === 'waiting' && reply.isNext)
      if (reply.freeInMs !== null) assert.ok(reply.freeInMs > 0 && reply.freeInMs <= 20_000)
      const behind = await raw.claim(claimOf('door', 'raw:3'))
      assert.ok(behind.status === 'waiting' && !behind.isNext)
    },
  },
  {
    title: 'one who waits learns above which number its fence will be',
    behaviours: [56, 79],
    async run(scene) {
      const raw = scene.raw()
      const first = await raw.claim(claimOf('door', 'raw:1'))
      const second = await raw.claim(claimOf('door', 'raw:2'))
      const third = await raw.claim(claimOf('door', 'raw:3'))
      assert.ok(first.status === 'granted' && second.status === 'waiting' && third.status === 'waiting')
      assert.ok(second.grantsAbove >= first.fence)
      await raw.release('door', 'raw:1')
      const [held, waiting] = await raw.pulse([beatOf('raw:2'), beatOf('raw:3')])
      assert.ok(held?.status === 'held' && waiting?.status === 'waiting')
      assert.ok(held.fence > second.grantsAbove)
      assert.ok(waiting.grantsAbove >= held.fence)
      await raw.release('door', 'raw:2')
      const [last] = await raw.pulse([beatOf('raw:3')])
      assert.ok(last?.status === 'held' && last.fence > waiting.grantsAbove)
    },
  },
  {
    title: 'every call drops lapsed claims and promotes',
    behaviours: [18, 19],
    async run(scene) {
      const raw = scene.raw()
      // The first wait of a client may take longer than these leases: it has to be heard first.
      for (const id of ['raw:a', 'raw:b']) await raw.claim(claimOf('window', id))
      await raw.claim(claimOf('door', 'raw:1', { leaseMs: SHORT_MS }))
      // On a slow machine it is granted at once, because the first one has lapsed already: then it
      // lapses as a holder.
      await raw.claim(claimOf('door', 'raw:2', { leaseMs: SHORT_MS, presenceMs: SHORT_MS }))
      await raw.claim(claimOf('door', 'raw:3'))
      await raw.claim(claimOf('door', 'raw:4'))
      await pass(SHORT_MS * 1.2)
      // The last one asks; the first who is still alive is promoted by it.
      const [last] = await raw.pulse([beatOf('raw:4')])
      assert.ok(last?.status === 'waiting' && last.isNext)
      // A quorum may agree on it a moment later.
      await eventually('the promotion', async () => {
        const [first] = await raw.pulse([beatOf('raw:3')])
        return first?.status === 'held'
      })
    },
  },
  {
    title: 'a line remembers its capacity, and refuses another one',
    behaviours: [17],
    permits: true,
    async run(scene) {
      const raw = scene.raw()
      await scene.client().mutex('door').acquire({ lease: LONG_MS })
      const seats = { permits: 1, capacity: 3 }
      const reply = await raw.claim(claimOf('door', 'raw:1', seats))
      assert.ok(reply.status === 'refused' && reply.reason === 'capacity' && (reply.capacity ?? 0) > 3)
      assert.equal((await raw.claim(claimOf('window', 'raw:2', seats))).status, 'granted')
      await rejectsWith('CAPACITY_MISMATCH', scene.client().mutex('window').acquire())
      assert.equal((await scene.line('window'))?.waiters.length, 0)
      // It is forgotten with the line.
      await raw.release('window', 'raw:2')
      assert.ok(await scene.client().mutex('window').tryAcquire())
    },
  },
  {
    title: 'the store tells a client about its own claims only',
    behaviours: [73],
    async run(scene) {
      const [one, two] = [scene.raw(), scene.raw()]
      await one.claim(claimOf('door', 'one:1'))
      await one.claim(claimOf('door', 'one:2'))
      await two.claim(claimOf('door', 'two:1'))
      const told = (raw: RawClient) => raw.pushes.flatMap((push) => ('id' in push ? [push.id] : []))
      await one.release('door', 'one:1')
      await eventually('the push', () => told(one).length > 0)
      await one.release('door', 'one:2')
      const [reply] = await two.pulse([beatOf('two:1')])
      assert.equal(reply?.status, 'held')
      await pass(50)
      assert.deepEqual(told(one), ['one:2'])
      assert.ok(told(two).every((id) => id === 'two:1'))
    },
  },
  {
    title: 'a watch tells of the next change of a state, and of that one only',
    behaviours: [97, 98, 99],
    async run(scene) {
      const [watcher, writer] = [scene.raw(), scene.raw()]
      const told = (): number => watcher.pushes.filter(({ type }) => type === 'state').length
      const write = async (expect: number | null): Promise<number> => {
        const { current } = await writer.write({ key: 'count', expect, value: 'x', retentionMs: null })
        return current?.version ?? Number.NaN
      }
      assert.equal(await watcher.read('count', true), null)
      const first = await write(null)
      await eventually('the first change', () => told() === 1)
      const second = await write(first)
      await pass(50)
      assert.equal(told(), 1, 'told without having asked again')
      assert.equal((await watcher.read('count', true))?.version, second)
      await write(second)
      await eventually('the third change', () => told() === 2)
    },
  },
  {
    title: 'a closed connection refuses every call with CLOSED',
    behaviours: [116],
    async run(scene) {
      const raw = scene.raw()
      await raw.claim(claimOf('door', 'raw:1'))
      await raw.close()
      await raw.close()
      await rejectsWith('CLOSED', Promise.resolve(raw.claim(claimOf('door', 'raw:2'))))
      await rejectsWith('CLOSED', raw.pulse([]))
      await rejectsWith('CLOSED', Promise.resolve(raw.release('door', 'raw:1')))
    },
  },
  {
    title: 'what a closed connection had in lines is left to lapse',
    behaviours: [116],
    async run(scene) {
      const raw = scene.raw()
      await raw.claim(claimOf('door', 'raw:1'))
      await raw.close()
      assert.equal((await scene.line('door'))?.holders.length, 1)
    },
  },
]
