import assert from 'node:assert/strict'
import { HoldfastError } from '../../base/errors.js'
import type { Election } from '../../primitives/election.js'
import type { Leader } from '../../primitives/leadership.js'
import {
  assertIncreasing,
  eventually,
  inTime,
  pass,
  rejectsWith,
  settled,
  throwsWith,
  Watched,
} from './checks.js'
import { FORGIVING_MS, IMPATIENT_MS, LONG_MS, RENEWED_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

const lease = LONG_MS

/** Collects what an observer sees, until the signal aborts. */
function watch(election: Election, signal: AbortSignal): { seen: Leader[]; done: Promise<void> } {
  const seen: Leader[] = []
  const done = (async () => {
    for await (const leader of election.observe({ signal })) seen.push(leader)
  })()
  done.catch(() => {})
  return { seen, done }
}

export const electionCases: readonly CaseSpec[] = [
  {
    title: 'one candidate leads; when it resigns, the next one does, in a later term',
    behaviours: [99],
    async run(scene) {
      const [one, two] = [scene.client().election('boss'), scene.client().election('boss')]
      assert.equal(await two.leader(), null)
      const first = await one.campaign({ id: 'one', lease })
      assert.deepEqual([first.id, first.isLeader], ['one', true])
      assert.deepEqual(await two.leader(), { id: 'one', term: first.term })
      await rejectsWith('ACQUIRE_TIMEOUT', two.campaign({ id: 'two', wait: 40 }))
      const waiting = new Watched(two.campaign({ id: 'two', lease }))
      await scene.waiting('election:boss', 1)
      assert.equal(waiting.isSettled, false)
      assert.equal(await first.resign(), true)
      assert.deepEqual([first.isLeader, first.signal.aborted], [false, false])
      const second = await inTime('the second leader', waiting.promise)
      assert.ok(second.term > first.term)
      assert.deepEqual(await one.leader(), { id: 'two', term: second.term })
      assert.equal(await first.resign(), true)
      assert.equal(second.isLeader, true)
      await second.resign()
      assert.equal(await one.leader(), null)
    },
  },
  {
    title: 'a leader that campaigns again stands in line behind the others',
    behaviours: [99],
    async run(scene) {
      const [one, two] = [scene.client().election('boss'), scene.client().election('boss')]
      const first = await one.campaign({ id: 'one', lease })
      const other = two.campaign({ id: 'two', lease })
      await scene.waiting('election:boss', 1)
      const again = one.campaign({ id: 'one', lease })
      await scene.waiting('election:boss', 2)
      await first.resign()
      const second = await inTime('the other', other)
      await second.resign()
      const third = await inTime('the first again', again)
      assertIncreasing([first.term, second.term, third.term])
    },
  },
  {
    title: 'a leader that loses its hold is told by its signal, and the next one leads',
    behaviours: [99, 42],
    async run(scene) {
      const election = scene.client().election('boss')
      const leadership = await election.campaign({ id: 'one', lease: RENEWED_MS })
      const { signal } = leadership
      const next = scene.client().election('boss').campaign({ id: 'two', lease })
      await scene.waiting('election:boss', 1)
      await scene.client().breakHold('election:boss', { fence: leadership.term })
      await eventually('the loss', () => signal.aborted)
      assert.ok(signal.reason instanceof HoldfastError && signal.reason.code === 'HOLD_LOST')
      assert.equal(leadership.isLeader, false)
      const second = await inTime('the next leader', next)
      assert.equal(await leadership.resign(), false)
      await pass(20)
      assert.deepEqual(await election.leader(), { id: 'two', term: second.term })
      assert.equal(second.isLeader, true)
    },
  },
  {
    title: 'a leader that cannot reach the store leads no longer than its lease',
    behaviours: [99, 44],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const leadership = await locks.election('boss').campaign({ id: 'one', lease: RENEWED_MS })
      store.cut()
      const next = scene.client().election('boss').campaign({ id: 'two', lease })
      // Asked at the moment at which the other begins to lead: by then it must know, however late
      // either of them was woken.
      const doBothLead = next.then(() => leadership.isLeader)
      assert.equal(await inTime('the next leader', doBothLead), false, 'two believed to lead')
      assert.equal(leadership.signal.aborted, true)
    },
  },
  {
    title: 'resign of the election gives up what was won through it, and await using resigns',
    behaviours: [99, 32],
    async run(scene) {
      const election = scene.client().election('boss')
      const leadership = await election.campaign({ id: 'one', lease })
      await scene.client().election('boss').resign()
      assert.equal(leadership.isLeader, true)
      await election.resign()
      assert.deepEqual([leadership.isLeader, await election.leader()], [false, null])
      {
        await using second = await election.campaign({ id: 'two', lease })
        assert.equal((await election.leader())?.term, second.term)
      }
      assert.equal(await election.leader(), null)
      await scene.empty('election:boss')
    },
  },
  {
    title: 'an observer sees the present leader, and then every new one, in order',
    behaviours: [99],
    async run(scene) {
      const election = scene.client().election('boss')
      const before = await election.campaign({ id: 'before', lease })
      const stop = new AbortController()
      const { seen, done } = watch(scene.client().election('boss'), stop.signal)
      await eventually('the present leader', () => seen.length === 1)
      const terms = [before.term]
      await before.resign()
      // Each is over at once: nobody could tell them apart who only looks now and then.
      for (let number = 0; number < 30; number++) {
        const leadership = await election.campaign({ id: `number ${number}`, lease })
        terms.push(leadership.term)
        await leadership.resign()
      }
      await eventually('all of them', () => seen.length === 31)
      assert.deepEqual(
        seen.map(({ term }) => term),
        terms,
      )
      assertIncreasing(terms)
      stop.abort()
      await inTime('the end of the observation', done)
    },
  },
  {
    title: 'an observer does not see leaders from before it came',
    behaviours: [99],
    async run(scene) {
      const election = scene.client().election('boss')
      for (const id of ['one', 'two']) await (await election.campaign({ id, lease })).resign()
      const stop = new AbortController()
      const { seen, done } = watch(scene.client().election('boss'), stop.signal)
      await pass(30)
      assert.deepEqual(seen, [])
      const third = await election.campaign({ id: 'three', lease })
      await eventually('the new leader', () => seen.length > 0)
      assert.deepEqual(seen, [{ id: 'three', term: third.term }])
      stop.abort()
      await done
    },
  },
  {
    title: 'an observer whose pushes are lost sees every leader all the same',
    behaviours: [99, 78],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      store.onPush = () => {}
      const stop = new AbortController()
      const { seen, done } = watch(locks.election('boss'), stop.signal)
      await eventually('it looks', () => store.count('read') >= 2)
      const election = scene.client().election('boss')
      const terms: number[] = []
      for (let number = 0; number < 40; number++) {
        const leadership = await election.campaign({ id: `number ${number}`, lease })
        terms.push(leadership.term)
        await leadership.resign()
      }
      await eventually('all of them', () => seen.length >= 40)
      assert.deepEqual(
        seen.map(({ term }) => term),
        terms,
      )
      stop.abort()
      await done
    },
  },
  {
    title: 'observers end with their signal, by a break, and when the client closes',
    behaviours: [99, 116],
    async run(scene) {
      const locks = scene.client()
      const election = locks.election('boss')
      const none: Leader[] = []
      for await (const leader of election.observe({ signal: AbortSignal.abort() })) none.push(leader)
      assert.deepEqual(none, [])
      await election.campaign({ id: 'one', lease })
      for await (const leader of election.observe()) {
        assert.equal(leader.id, 'one')
        break
      }
      const { seen, done } = watch(election, new AbortController().signal)
      await eventually('it looks', () => seen.length === 1)
      const waiting = settled(election.campaign({ id: 'two' }))
      await scene.waiting('election:boss', 1)
      await locks.close()
      await rejectsWith('CLOSED', done)
      const outcome = await waiting
      assert.equal('error' in outcome && (outcome.error as { code?: string }).code, 'CLOSED')
      await rejectsWith('CLOSED', election.leader())
      assert.equal(await scene.client().election('boss').leader(), null)
    },
  },
  {
    title: 'a candidate that gives up never leads, and leaves nothing behind',
    behaviours: [99, 10],
    async run(scene) {
      const first = await scene.client().election('boss').campaign({ id: 'one', lease })
      const giveUp = new AbortController()
      const attempt = rejectsWith(
        'ABORTED',
        scene.client().election('boss').campaign({ id: 'two', lease, signal: giveUp.signal }),
      )
      await scene.waiting('election:boss', 1)
      giveUp.abort()
      await attempt
      await scene.waiting('election:boss', 0)
      await first.resign()
      assert.equal(await scene.client().election('boss').leader(), null)
    },
  },
  {
    title: 'a candidate whose replies are lost is elected once, and announced once',
    behaviours: [99, 31],
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: FORGIVING_MS })
      const stop = new AbortController()
      const { seen, done } = watch(scene.client().election('boss'), stop.signal)
      const lost = new Set<string>()
      store.around = async (call, go) => {
        const reply = await go()
        if (lost.has(call.method)) return reply
        lost.add(call.method)
        return new Promise<never>(() => {})
      }
      const leadership = await inTime('the election', locks.election('boss').campaign({ id: 'one', lease }))
      assert.equal(leadership.isLeader, true)
      await eventually('the announcement', () => seen.length > 0)
      await pass(30)
      assert.deepEqual(seen, [{ id: 'one', term: leadership.term }])
      await leadership.resign()
      stop.abort()
      await done
    },
  },
  {
    title: 'a candidate that cannot announce itself does not lead',
    behaviours: [99, 115],
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: IMPATIENT_MS })
      store.cut('write')
      await rejectsWith('STORE_UNAVAILABLE', locks.election('boss').campaign({ id: 'one', lease }))
      await scene.empty('election:boss')
      throwsWith('INVALID_ARGUMENT', () => locks.election(''))
      await rejectsWith('INVALID_ARGUMENT', locks.election('boss').campaign({ id: '' }))
    },
  },
  {
    title: 'kill -9 of the leader: the next one leads in a later term, and every process sees it',
    behaviours: [99, 18],
    processes: true,
    async run(scene) {
      const [victim, next, observer] = await scene.workers(3)
      assert.ok(victim && next && observer)
      await observer.call('observe', 'boss')
      const first = await victim.call('campaign', 'boss', { id: 'victim', lease: RENEWED_MS })
      const waiting = next.call('campaign', 'boss', { id: 'next', lease: RENEWED_MS })
      await scene.waiting('election:boss', 1)
      // It was told to look, and may not have done so yet: who led before is not its business.
      await eventually('the observer looks', async () => (await observer.call('observed')).length === 1)
      await victim.kill()
      const election = scene.client().election('boss')
      const second = await inTime('the next leader', waiting)
      assert.ok(second.term > first.term)
      assert.deepEqual(await election.leader(), { id: 'next', term: second.term })
      await eventually('the observer knows', async () => (await observer.call('observed')).length === 2)
      assert.deepEqual(await observer.call('observed'), [
        { id: 'victim', term: first.term },
        { id: 'next', term: second.term },
      ])
      await next.kill()
      await eventually('nobody leads', async () => (await election.leader()) === null)
    },
  },
  {
    title: 'a leader that was stopped beyond its lease knows that it leads no more',
    behaviours: [99, 53],
    processes: true,
    async run(scene) {
      const worker = await scene.worker()
      const { leadership, term } = await worker.call('campaign', 'boss', { id: 'slow', lease: RENEWED_MS })
      await scene.pause(worker)
      const next = await inTime('the next', scene.client().election('boss').campaign({ id: 'next', lease }))
      const look = worker.call('leads', leadership)
      worker.resume()
      assert.deepEqual(await inTime('its look', look), { isLeader: false, isAborted: true })
      assert.equal(await worker.call('resign', leadership), false)
      assert.ok(next.term > term && next.isLeader)
    },
  },
]
