import assert from 'node:assert/strict'
import { deferred } from '../../base/deferred.js'
import type { Barrier } from '../../primitives/barrier.js'
import { eventually, inTime, now, pass, rejectsWith, settled, throwsWith, Watched } from './checks.js'
import { claimOf, FORGIVING_MS, LONG_MS, RENEWED_MS, type Scene, SHORT_MS } from './scene.js'
import type { CaseSpec } from './suite.js'

function parties(scene: Scene, count: number): Barrier[] {
  return Array.from({ length: count }, () => scene.client().barrier('phase', count))
}

async function arrived(barrier: Barrier, count: number): Promise<void> {
  await eventually(`${count} arrivals`, async () => (await barrier.arrived()) === count)
}

export const barrierCases: readonly CaseSpec[] = [
  {
    title: 'nobody passes a barrier before all have arrived, and then all do',
    behaviours: [98],
    async run(scene) {
      const [one, two, three] = parties(scene, 3)
      assert.ok(one && two && three)
      assert.equal(await one.arrived(), 0)
      const meetings = [new Watched(one.meet()), new Watched(two.meet())]
      await arrived(three, 2)
      await pass(50)
      for (const { isSettled } of meetings) assert.equal(isSettled, false)
      await inTime('the last one', three.meet())
      await inTime('the others', Promise.all(meetings.map(({ promise }) => promise)))
      await arrived(one, 0)
      await scene.empty('barrier:phase')
    },
  },
  {
    title: 'a barrier is used round after round, and rounds do not mix',
    behaviours: [98],
    async run(scene) {
      const all = parties(scene, 3)
      const counts = [0, 0, 0]
      const party = async (index: number): Promise<void> => {
        for (let round = 1; round <= 12; round++) {
          counts[index] = round
          await all[index]?.meet({ lease: LONG_MS })
          // Everybody has at least begun this round, and nobody is more than one ahead.
          for (const count of counts) assert.ok(count === round || count === round + 1, counts.join())
        }
      }
      await inTime('12 rounds', Promise.all([0, 1, 2].map(party)))
      await scene.empty('barrier:phase')
    },
  },
  {
    title: 'a barrier of one lets everybody pass; parties of one client meet, too',
    behaviours: [98],
    async run(scene) {
      const alone = scene.client().barrier('alone', 1)
      for (let time = 0; time < 3; time++) await inTime('the meeting', alone.meet({ wait: '20s' }))
      const phase = scene.client().barrier('phase', 4)
      await inTime('four of one client', Promise.all([1, 2, 3, 4].map(() => phase.meet())))
    },
  },
  {
    title: 'a party too many waits for the next round',
    behaviours: [98],
    async run(scene) {
      const barriers = Array.from({ length: 3 }, () => scene.client().barrier('phase', 2))
      const [first, second, extra] = barriers
      assert.ok(first && second && extra)
      const meetings = barriers.map((barrier) => new Watched(barrier.meet()))
      await eventually('two have met', () => meetings.filter(({ isSettled }) => isSettled).length === 2)
      await pass(50)
      assert.equal(meetings.filter(({ isSettled }) => isSettled).length, 2)
      await arrived(first, 1)
      await inTime('the next round', first.meet())
      await inTime('the extra party', Promise.all(meetings.map(({ promise }) => promise)))
    },
  },
  {
    title: 'another number of parties is refused while somebody is there',
    behaviours: [98, 91],
    async run(scene) {
      const meeting = scene.client().barrier('phase', 2).meet()
      await arrived(scene.client().barrier('phase', 2), 1)
      await rejectsWith('CAPACITY_MISMATCH', scene.client().barrier('phase', 3).meet())
      await scene.client().barrier('phase', 2).meet()
      await meeting
    },
  },
  {
    title: 'a party that gives up undoes its arrival',
    behaviours: [98, 6, 10],
    async run(scene) {
      const [one, two] = parties(scene, 2)
      assert.ok(one && two)
      const startedAt = now()
      await rejectsWith('ACQUIRE_TIMEOUT', one.meet({ wait: 100 }))
      assert.ok(now() - startedAt >= 100)
      await rejectsWith('ACQUIRE_TIMEOUT', one.meet({ wait: 0 }))
      const giveUp = new AbortController()
      const reason = new Error('changed my mind')
      const aborted = rejectsWith('ABORTED', one.meet({ signal: giveUp.signal }))
      await arrived(two, 1)
      giveUp.abort(reason)
      assert.equal((await aborted).cause, reason)
      assert.equal(await two.arrived(), 0)
      const waits = new Watched(two.meet())
      await arrived(one, 1)
      await pass(30)
      assert.equal(waits.isSettled, false, 'met somebody who had gone')
      await inTime('the meeting', one.meet())
      await waits.promise
    },
  },
  {
    title: 'the wait for a place and the wait for the others share one time',
    behaviours: [98, 6],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      // Both places are taken, by one that never comes back.
      const request = { permits: 2, capacity: 2, leaseMs: 3500 }
      await scene.raw().claim(claimOf('barrier:phase', 'silent:1', request))
      const startedAt = now()
      // By a timer of the same process, which stands still when the other one does. A second time
      // would end later than this.
      const isTooLate = new Watched(pass(7900))
      const meeting = new Watched(locks.barrier('phase', 2).meet({ wait: 5000 }))
      await eventually('it gives up', () => store.count('release') > 0 || isTooLate.isSettled)
      assert.ok(store.count('release') > 0, `still waits after ${now() - startedAt} ms`)
      await rejectsWith('ACQUIRE_TIMEOUT', meeting.promise)
      assert.ok(now() - startedAt >= 5000)
    },
  },
  {
    title: 'a party that times out while others meet without it has not met',
    behaviours: [98],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const early = locks.barrier('phase', 2)
      const [one, two] = parties(scene, 2)
      assert.ok(one && two)
      // Its place is given back; before it can look what became of the others, two of them meet.
      const looking = deferred<void>()
      store.around = async (call, go) => {
        const reply = await go()
        if (call.method === 'release') {
          await inTime('the others', Promise.all([one.meet(), two.meet()]))
          looking.resolve()
        }
        return reply
      }
      await rejectsWith('ACQUIRE_TIMEOUT', early.meet({ wait: 60 }))
      await inTime('the others met', looking.promise)
      // Where its claim came later than its withdrawal, it is given back a moment later.
      await eventually('nobody there', async () => (await one.arrived()) === 0)
    },
  },
  {
    title: 'a party that times out while the last one arrives has met, or is not counted',
    behaviours: [98],
    async run(scene) {
      const clients = [scene.client(), scene.client(), scene.client()]
      const [hasty, one, two] = clients.map((client) => client.barrier('phase', 2))
      assert.ok(hasty && one && two)
      const outcomes = { met: 0, timedOut: 0 }
      for (let round = 0; round < 40; round++) {
        const early = settled(hasty.meet({ wait: 5 + (round % 8), lease: LONG_MS }))
        await pass(round % 13)
        const late = [new Watched(one.meet({ lease: LONG_MS }))]
        if (round % 2 === 1) late.push(new Watched(two.meet({ lease: LONG_MS })))
        const isMet = !('error' in (await early))
        outcomes[isMet ? 'met' : 'timedOut']++
        // Parties pass in pairs. If one is left over, one more party must set it free; otherwise
        // none must be needed.
        const isOdd = (late.length + (isMet ? 1 : 0)) % 2 === 1
        if (isOdd) await inTime(`the pair of round ${round}`, scene.client().barrier('phase', 2).meet())
        await inTime(`all of round ${round}`, Promise.all(late.map(({ promise }) => promise)))
        await scene.empty('barrier:phase')
      }
      assert.ok(outcomes.timedOut > 0, 'nobody timed out')
    },
  },
  {
    title: 'a party that fell silent is replaced, and does not pass with the parties that came in its place',
    behaviours: [98],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const slow = new Watched(locks.barrier('phase', 2).meet({ lease: SHORT_MS }))
      const [one, two] = parties(scene, 2)
      assert.ok(one && two)
      await arrived(one, 1)
      // As if its process stood still: nothing of it gets through, nothing reaches it.
      store.hang()
      store.onPush = () => {}
      await arrived(one, 0)
      await inTime('the others', Promise.all([one.meet(), two.meet()]))
      store.heal()
      store.tell({ type: 'gap' })
      await arrived(one, 1)
      assert.equal(slow.isSettled, false, 'three have passed a barrier of two')
      await inTime('the next round', one.meet())
      await inTime('the one who was slow', slow.promise)
    },
  },
  {
    title: 'a party whose arrival is broken while it waits arrives anew',
    behaviours: [98, 43],
    async run(scene) {
      const [one, two] = parties(scene, 2)
      assert.ok(one && two)
      // Long enough that it is not lost by itself; where the push of the break is lost, its pulse
      // finds out in time.
      const meeting = new Watched(one.meet({ lease: RENEWED_MS * 4 }))
      await arrived(two, 1)
      const [revoked] = await scene.client().breakHold('barrier:phase')
      assert.ok(revoked)
      await eventually('a new arrival', async () => {
        const [holder] = (await scene.line('barrier:phase'))?.holders ?? []
        return holder !== undefined && holder.fence > revoked.fence
      })
      assert.equal(meeting.isSettled, false)
      await inTime('the meeting', two.meet())
      await meeting.promise
    },
  },
  {
    title: 'parties whose pushes and replies get lost meet all the same',
    behaviours: [98, 78],
    async run(scene) {
      const { locks, store } = scene.intercepted({ storeTimeout: FORGIVING_MS })
      store.onPush = () => {}
      const lost = new Set<string>()
      store.around = async (call, go) => {
        const reply = await go()
        if (lost.has(call.method)) return reply
        lost.add(call.method)
        return new Promise<never>(() => {})
      }
      const meetings = [locks.barrier('phase', 2).meet(), scene.client().barrier('phase', 2).meet()]
      await inTime('both', Promise.all(meetings))
    },
  },
  {
    title: 'an arrival that the network repeats after its party has gone counts for nobody',
    behaviours: [98, 79],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      let claimAgain = async (): Promise<unknown> => assert.fail()
      store.around = (call, go) => {
        if (call.method === 'claim') claimAgain = go
        return go()
      }
      const [gone, here] = [locks.barrier('phase', 2), scene.client().barrier('phase', 2)]
      await inTime('the first round', Promise.all([gone.meet({ lease: RENEWED_MS }), here.meet()]))
      await scene.empty('barrier:phase')
      // Nobody is told of this grant, so it stays until its lease is over.
      await claimAgain()
      const waits = new Watched(here.meet({ lease: LONG_MS }))
      await arrived(here, 1)
      await pass(50)
      assert.equal(waits.isSettled, false, 'met somebody who never came')
      await inTime('the second round', gone.meet())
      await waits.promise
    },
  },
  {
    title: 'close sends those at a barrier away with CLOSED, and the others wait for somebody else',
    behaviours: [98, 116],
    async run(scene) {
      const closing = scene.client()
      const leaving = rejectsWith('CLOSED', closing.barrier('phase', 3).meet())
      const [one, two, three] = parties(scene, 3)
      assert.ok(one && two && three)
      const meeting = new Watched(one.meet())
      await arrived(two, 2)
      await closing.close()
      await leaving
      await arrived(two, 1)
      assert.equal(meeting.isSettled, false)
      await inTime('the rest', Promise.all([two.meet(), three.meet(), meeting.promise]))
    },
  },
  {
    title: 'wrong arguments of a barrier are refused before anything is sent',
    behaviours: [98, 14],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      for (const count of [0, -1, 1.5, Number.NaN, '2' as unknown as number])
        throwsWith('INVALID_ARGUMENT', () => locks.barrier('phase', count))
      throwsWith('INVALID_ARGUMENT', () => locks.barrier('', 2))
      for (const options of [{ wait: -1 }, { lease: 0 }, { lease: Infinity }, { label: '' }])
        await rejectsWith('INVALID_ARGUMENT', locks.barrier('phase', 2).meet(options))
      assert.equal(store.calls.length, 0)
    },
  },
  {
    title: 'processes meet round after round, and nobody is ahead',
    behaviours: [98],
    processes: true,
    async run(scene) {
      const workers = await scene.workers(3)
      const rounds = 15
      const all = await inTime(
        `${rounds} rounds`,
        Promise.all(workers.map((worker) => worker.call('meet', 'phase', 3, rounds, { lease: '20s' }))),
        40_000,
      )
      for (let round = 0; round < rounds; round++) {
        const lastArrival = Math.max(...all.map((each) => each[round]?.arrivedAt ?? Number.NaN))
        const firstPassage = Math.min(...all.map((each) => each[round]?.passedAt ?? Number.NaN))
        assert.ok(lastArrival <= firstPassage, `round ${round}: somebody passed before all had arrived`)
      }
    },
  },
  {
    title: 'kill -9 of a party that waits: another one comes in its place after its lease',
    behaviours: [98],
    processes: true,
    async run(scene) {
      const [victim, other] = await scene.workers(2)
      assert.ok(victim && other)
      victim.call('meet', 'phase', 3, 1, { lease: RENEWED_MS }).catch(() => {})
      const barrier = scene.client().barrier('phase', 3)
      await arrived(barrier, 1)
      await victim.kill()
      const first = other.call('meet', 'phase', 3, 1, { lease: RENEWED_MS })
      await eventually('the dead one is gone', async () => {
        const line = await scene.line('barrier:phase')
        return line?.holders.map(({ pid }) => pid).join() === String(other.pid)
      })
      const second = scene.client().barrier('phase', 3).meet({ lease: RENEWED_MS })
      await arrived(barrier, 2)
      await inTime('the third', barrier.meet())
      await inTime('all', Promise.all([first, second]))
    },
  },
  {
    title: 'a party that was stopped beyond its lease does not pass with the parties that came in its place',
    behaviours: [98, 53],
    processes: true,
    async run(scene) {
      const worker = await scene.worker()
      const slow = new Watched(worker.call('meet', 'phase', 2, 1, { lease: RENEWED_MS }))
      const [one, two] = parties(scene, 2)
      assert.ok(one && two)
      await arrived(one, 1)
      await scene.pause(worker)
      await arrived(one, 0)
      await inTime('the others', Promise.all([one.meet(), two.meet()]))
      worker.resume()
      await arrived(one, 1)
      assert.equal(slow.isSettled, false, 'three have passed a barrier of two')
      await inTime('the next round', one.meet())
      await inTime('the one who was stopped', slow.promise)
    },
  },
]
