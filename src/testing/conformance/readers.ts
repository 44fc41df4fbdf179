import assert from 'node:assert/strict'
import { deferred } from '../../base/deferred.js'
import type { Beat } from '../../contract/store.js'
import type { Hold } from '../../engine/hold.js'
import type { Lock } from '../../primitives/lock.js'
import {
  assertIncreasing,
  eventually,
  inTime,
  now,
  pass,
  rejectsWith,
  settled,
  standStill,
  Watched,
} from './checks.js'
import { type Call, type InterceptedStore, sayNothing } from './intercepted-store.js'
import { FORGIVING_MS, IMPATIENT_MS, LONG_MS, RENEWED_MS, type Scene } from './scene.js'
import type { CaseSpec } from './suite.js'

const lease = LONG_MS

/** At most so many of them share a claim where nobody knows whether somebody waits in the store. */
const BOUND = 64
/** Neighbours come in one after the other for 50 ms where others wait in the store, or nobody knows whether they do. */
const LONGER_THAN_A_TURN_MS = 80
/** HOLDFAST_ORDER_ROUNDS=200 for a proof. */
const ORDER_ROUNDS = Number(process.env['HOLDFAST_ORDER_ROUNDS'] ?? 3)

/** Readers of one process who share a claim. Whatever the suite's own order is, these clients use cohorts. */
export const readersCases: readonly CaseSpec[] = [
  {
    title: 'readers of one process are inside together, each with a greater fence, and hardly ask the store',
    behaviours: [66, 75, 80],
    async run(scene) {
      if (!(await scene.tellsOfWaiters())) return
      const { read, store } = readers(scene)
      const startedAt = now()
      const first = await read.acquire({ lease })
      const all = await inTime(
        'all readers',
        Promise.all(Array.from({ length: 100 }, () => read.acquire({ lease }))),
      )
      assertIncreasing([first, ...all].map(({ fence }) => fence))
      assert.ok(all.every(({ isValid, permits }) => isValid && permits === 1))
      assert.equal((await scene.line('config'))?.holders.length, 1)
      // And a renewal now and then, where a session bounds the lease and the machine is slow.
      const most = 6 + (now() - startedAt) / 2000
      assert.ok(store.calls.length <= most, `${store.calls.length} calls`)
      for (const hold of all) assert.equal(await hold.release(), true)
      assert.equal(store.count('release'), 0)
      assert.equal(first.isValid, true)
      assert.equal(await first.release(), true)
      await scene.empty('config')
    },
  },
  {
    title: 'a writer gets in when the last of the readers that share has left, and not before',
    behaviours: [66, 80],
    async run(scene) {
      const { read } = readers(scene)
      const [one, two] = [await read.acquire({ lease }), await read.acquire({ lease })]
      const writer = new Watched(scene.client().readWrite('config').write.acquire({ lease }))
      await scene.waiting('config', 1)
      assert.equal(await one.release(), true)
      // Once more, by a task that has forgotten it: it takes nothing from its neighbour.
      assert.equal(await one.release(), true)
      await rejectsWith('NOT_HELD', one.extend('1s'))
      await pass(30)
      assert.deepEqual([one.isValid, two.isValid, writer.isSettled], [false, true, false])
      assert.equal(await two.release(), true)
      const hold = await inTime('the writer', writer.promise)
      assertIncreasing([one.fence, two.fence, hold.fence])
      await hold.release()
    },
  },
  {
    title:
      'readers and writers of one process come in as they asked: neither kind passes the lock by the other',
    behaviours: [72, 80, 81],
    async run(scene) {
      const inOrder = ['reader 1', 'reader 2', 'writer 1', 'writer 2', 'reader 3', 'writer 3']
      assert.deepEqual(await serveInTurn(scene), inOrder)
      await scene.empty('config')
    },
  },
  {
    title: 'a writer overtakes no earlier reader of its own process that still has to come in beside others',
    behaviours: [72, 80, 81],
    async run(scene) {
      for (let round = 0; round < ORDER_ROUNDS; round++) {
        await askBesideReader(scene, ['reader', 'reader', 'writer'])
        await askBesideReader(scene, ['reader', 'writer'])
        await askBesideReader(scene, ['reader', 'writer', 'reader', 'reader', 'writer', 'writer', 'reader'])
      }
    },
  },
  {
    title: 'a reader behind a writer of its own process stands in line, and asks for no fences meanwhile',
    behaviours: [66, 72],
    async run(scene) {
      const { read, write, store } = readers(scene)
      sayNothing(store)
      const first = await read.acquire({ lease })
      const writer = write.acquire({ lease })
      await scene.waiting('config', 1)
      const later = read.acquire({ lease })
      await scene.waiting('config', 2)
      assert.equal(store.calls.filter(asksForFences).length, 0)
      await first.release()
      await (await inTime('the writer', writer)).release()
      await (await inTime('the later reader', later)).release()
      await scene.empty('config')
    },
  },
  {
    title:
      'a reader that gets the place of one who gave up has a greater fence than those that came before it',
    behaviours: [66, 75],
    async run(scene) {
      const { read, store } = readers(scene)
      const other = scene.client().readWrite('config')
      const writer = await other.write.acquire({ lease })
      const giveUp = new AbortController()
      const gone = settled(read.acquire({ lease, signal: giveUp.signal }))
      await scene.waiting('config', 1)
      const late: (() => void)[] = []
      store.onPush = (_news, deliver) => void late.push(deliver)
      // From here on the place is a grant, which nobody knows of when it goes to the next one.
      await writer.release()
      const before = await other.read.acquire({ lease })
      const next = read.acquire({ lease })
      giveUp.abort()
      await gone
      store.heal()
      for (const deliver of late) deliver()
      assertIncreasing([before.fence, (await inTime('the next reader', next)).fence])
    },
  },
  {
    title: 'the fence of a reader that comes later is greater than those of other processes that came before',
    behaviours: [66, 75],
    async run(scene) {
      const { read } = readers(scene)
      const fences = [(await read.acquire({ lease })).fence]
      const giveUp = new AbortController()
      const other = scene.client().readWrite('config').read
      for (let time = 0; time < 5; time++) {
        // One of those who are waited for with a fence may be gone when it comes: nobody later gets that one.
        const gone = settled(read.acquire({ lease, signal: giveUp.signal }))
        const two = await Promise.all([read.acquire({ lease }), read.acquire({ lease })])
        fences.push(...two.map(({ fence }) => fence))
        fences.push((await other.acquire({ lease })).fence)
        await gone
      }
      giveUp.abort()
      assertIncreasing(fences)
    },
  },
  {
    title: 'a reader that comes while fences are on their way to others gets a later one',
    behaviours: [66, 75],
    run: (scene) => comeLate(scene, async () => {}),
  },
  {
    title: 'a reader that takes over while fences are on their way to others gets a later one',
    behaviours: [66, 75],
    run: (scene) => comeLate(scene, (first) => first.release()),
  },
  {
    title: 'a claim that takes nobody in any more brings nobody a fence',
    behaviours: [66, 75],
    run: (scene) => comeLate(scene, async (_first, closed) => void settled(closed.extend(50))),
  },
  {
    title: 'fences that were asked for one who gave up are not for those who come later',
    behaviours: [66, 75],
    async run(scene) {
      if (!(await scene.tellsOfWaiters())) return
      const { read, store } = readers(scene)
      const first = await read.acquire({ lease })
      const answers = holdAnswers(store)
      const second = read.acquire({ lease })
      const giveUp = new AbortController()
      const gone = settled(read.acquire({ lease, signal: giveUp.signal }))
      const third = read.acquire({ lease })
      await eventually('the first asking', () => store.count('pulse') === 1)
      answers.pass()
      await eventually('the asking for two', () => store.count('pulse') === 2)
      giveUp.abort()
      await gone
      answers.pass()
      const three = [first, await inTime('the second', second), await inTime('the third', third)]
      const { fence } = await scene.client().readWrite('config').read.acquire({ lease })
      const late = read.acquire({ lease })
      // What they had is the late one's now, but no fence from before it came.
      for (const hold of three) await hold.release()
      store.heal()
      answers.pass()
      assertIncreasing([fence, (await inTime('the late one', late)).fence])
    },
  },
  {
    title: 'fences that came with a grant are not for those who came after it',
    behaviours: [66, 75],
    async run(scene) {
      if (!(await scene.tellsOfWaiters())) return
      const { read, store } = readers(scene)
      const first = await read.acquire({ lease })
      const writer = scene.client().readWrite('config').write.acquire({ lease })
      await scene.waiting('config', 1)
      const giveUp = new AbortController()
      const next = read.acquire({ lease })
      const gone = settled(read.acquire({ lease, signal: giveUp.signal }))
      await scene.waiting('config', 2)
      // The grant is not heard of until another process reads, too, and one more reader has come.
      store.onPush = () => {}
      await first.release()
      await (await inTime('the writer', writer)).release()
      const other = await scene.client().readWrite('config').read.acquire({ lease })
      giveUp.abort()
      await gone
      const late = read.acquire({ lease })
      store.tell({ type: 'gap' })
      const [early, last] = await inTime('both', Promise.all([next, late]))
      assertIncreasing([Math.max(early.fence, other.fence), last.fence])
    },
  },
  {
    title: 'a waiting writer stops the later readers of a process that reads already',
    behaviours: [66, 72, 81],
    async run(scene) {
      const { read } = readers(scene)
      const first = await read.acquire({ lease })
      const writer = new Watched(scene.client().readWrite('config').write.acquire({ lease }))
      await scene.waiting('config', 1)
      if (!(await scene.tellsOfWaiters())) await pass(LONGER_THAN_A_TURN_MS)
      const late = Array.from({ length: 10 }, () => new Watched(read.acquire({ lease })))
      await scene.waiting('config', 2)
      assert.ok(!late.some(({ isSettled }) => isSettled), 'a reader overtook the writer')
      await first.release()
      const hold = await inTime('the writer', writer.promise)
      assert.ok(!late.some(({ isSettled }) => isSettled))
      await hold.release()
      const holds = await inTime('the late ones', Promise.all(late.map(({ promise }) => promise)))
      assertIncreasing([first.fence, hold.fence, ...holds.map(({ fence }) => fence)])
      for (const each of holds) await each.release()
      await scene.empty('config')
    },
  },
  {
    title: 'where a store does not say whether others wait, readers share a claim for a turn only',
    behaviours: [66, 72],
    async run(scene) {
      const { read, store } = readers(scene)
      sayNothing(store)
      const all = Array.from({ length: 200 }, () => read.acquire({ lease }))
      await inTime('all of them', Promise.all(all))
      assert.ok(store.count('claim') >= 200 / BOUND, `${store.count('claim')} claims`)
      await pass(LONGER_THAN_A_TURN_MS)
      const before = store.count('claim')
      await inTime('one more', read.acquire({ lease }))
      assert.equal(store.count('claim'), before + 1)
    },
  },
  {
    title: 'what readers share is lost for all of them, and those who wait stand in line again',
    behaviours: [42, 66, 70],
    async run(scene) {
      const { read, store } = readers(scene)
      const two = [await read.acquire({ lease }), await read.acquire({ lease })]
      const signals = two.map(({ signal }) => signal)
      const left = await read.acquire({ lease })
      const { signal } = left
      await left.release()
      store.hang('pulse')
      const late = read.acquire({ lease })
      await scene.client().breakHold('config')
      await eventually('the loss', () => signals.every(({ aborted }) => aborted))
      assert.ok(two.every(({ isValid }) => !isValid))
      assert.equal(signal.aborted, false, 'who has left has lost nothing')
      for (const hold of two) assert.equal(await hold.release(), false)
      store.heal()
      const hold = await inTime('the late one', late)
      assertIncreasing([...two, left, hold].map(({ fence }) => fence))
      await hold.release()
      await scene.empty('config')
    },
  },
  {
    title: 'nobody comes in beside readers whose time has run out',
    behaviours: [42, 44, 66],
    async run(scene) {
      const { read, store } = readers(scene, FORGIVING_MS)
      const two = [await read.acquire({ lease: RENEWED_MS }), await read.acquire({ lease: RENEWED_MS })]
      store.cut()
      await eventually('the loss', () => two.every(({ isValid }) => !isValid))
      const late = new Watched(settled(read.acquire({ lease: RENEWED_MS })))
      await pass(30)
      assert.equal(late.isSettled, false)
      store.heal()
      const outcome = await inTime('the late one', late.promise)
      assert.ok('value' in outcome && outcome.value.fence > Math.max(...two.map(({ fence }) => fence)))
    },
  },
  {
    title: 'an answer that comes when the time is over lets nobody in',
    behaviours: [42, 44, 66],
    // It stops the whole process.
    alone: true,
    async run(scene) {
      const { read, store } = readers(scene)
      const first = await read.acquire({ lease: RENEWED_MS })
      store.around = async (call, go) => {
        const reply = await go()
        // As if the process had been stopped: no timer has run since when the answer is looked at.
        if (call.method === 'pulse') standStill(RENEWED_MS)
        return reply
      }
      const late = read.acquire({ lease: RENEWED_MS })
      await eventually('the loss', () => !first.isValid)
      store.heal()
      const hold = await inTime('the late one', late)
      assert.ok(hold.isValid && hold.fence > first.fence)
      await hold.release()
    },
  },
  {
    title: 'a reader among neighbours cannot be exported; alone it can, and is alone from then on',
    behaviours: [55, 66],
    async run(scene) {
      const { read, store } = readers(scene)
      const [one, two] = [await read.acquire({ lease }), await read.acquire({ lease })]
      if ((await scene.line('config'))?.holders.length === 1) await rejectsWith('UNSUPPORTED', one.export())
      await two.release()
      const passed = await one.export()
      const beside = await inTime('one more reader', read.acquire({ lease }))
      assert.equal((await scene.line('config'))?.holders.length, 2)
      const adopted = await scene.client().adopt(passed)
      await eventually('the loss', () => !one.isValid)
      assert.deepEqual([beside.isValid, adopted.isValid, adopted.permits], [true, true, 1])
      assert.ok(adopted.fence > beside.fence)
      await adopted.release()
      await beside.release()
      assert.equal(store.count('claim'), 2)
      await scene.empty('config')
    },
  },
  {
    title: 'a reader that is extended gets no further neighbours, and takes nothing from those it has',
    behaviours: [66],
    async run(scene) {
      const { read } = readers(scene)
      const [one, two] = [await read.acquire({ lease }), await read.acquire({ lease })]
      // One, unless the turn was over before the second came.
      const claims = (await scene.line('config'))?.holders.length ?? 0
      await one.extend(50)
      await one.downgrade()
      await two.extend(50)
      const third = await inTime('the third', read.acquire({ lease }))
      assert.equal((await scene.line('config'))?.holders.length, claims + 1)
      await one.release()
      assert.deepEqual([two.isValid, third.isValid], [true, true])
      await two.release()
      assert.equal(third.isValid, true)
      await third.release()
      await scene.empty('config')
    },
  },
  {
    title: 'a reader enters again beside its neighbours, and is refused as a writer at once',
    behaviours: [66, 83],
    async run(scene) {
      const { read, write } = readers(scene)
      const neighbour = await read.acquire({ lease })
      await read.run(
        async (hold) => {
          assert.ok(hold.fence > neighbour.fence)
          await read.run((again) => assert.equal(again.fence, hold.fence))
          await rejectsWith('UPGRADE_REFUSED', write.acquire({ lease }))
          await neighbour.release()
          assert.equal(hold.isValid, true)
          await read.run((again) => assert.equal(again.fence, hold.fence))
        },
        { lease },
      )
      await scene.empty('config')
    },
  },
  {
    title:
      'when the store falls silent, those who want to come in are told in time, and those inside are not disturbed',
    behaviours: [66, 74],
    async run(scene) {
      const { read, store } = readers(scene, IMPATIENT_MS)
      const first = await read.acquire({ lease })
      store.hang()
      const late = Array.from({ length: 5 }, () => rejectsWith('STORE_UNAVAILABLE', read.acquire({ lease })))
      await inTime('all of them', Promise.all(late))
      // Where a session decides about leases, its time may be over by now.
      assert.ok(first.isValid || !scene.perHoldLease)
      store.heal()
      await (await inTime('a reader', read.acquire({ lease }))).release()
    },
  },
  {
    title: 'readers that give up on the way keep nobody, and leave nothing behind',
    behaviours: [13, 66],
    async run(scene) {
      const { read, store } = readers(scene)
      const first = await read.acquire({ lease })
      store.hang('pulse')
      const giveUp = new AbortController()
      const gone = Array.from({ length: 20 }, () =>
        rejectsWith('ABORTED', read.acquire({ lease, signal: giveUp.signal })),
      )
      // The last one leaves while others want to come in: what it had is theirs, until they give up as well.
      await first.release()
      giveUp.abort()
      await Promise.all(gone)
      store.heal()
      await scene.empty('config')
    },
  },
  {
    title: 'breaking what readers of one process share, by the fence of any of them, tells all',
    behaviours: [87],
    async run(scene) {
      const { read, locks } = readers(scene)
      const two = [await read.acquire({ lease }), await read.acquire({ lease })]
      const holders = (await scene.line('config'))?.holders
      const robbed = await locks.breakHold('config', { fence: two[1]?.fence ?? 0 })
      assert.deepEqual(
        robbed.map(({ permits }) => permits),
        [1],
      )
      await eventually('the loss', () => two[1]?.isValid === false)
      assert.equal(two[0]?.isValid, holders?.length === 2)
    },
  },
  {
    title: 'close takes what readers share from all of them, and leaves nothing in line',
    behaviours: [116],
    async run(scene) {
      const { read, locks, store } = readers(scene)
      const two = [await read.acquire({ lease }), await read.acquire({ lease })]
      store.hang('pulse')
      const waiting = Array.from({ length: 5 }, () => rejectsWith('CLOSED', read.acquire({ lease })))
      await locks.close({ drain: 0 })
      await Promise.all(waiting)
      assert.ok(two.every(({ isValid }) => !isValid))
      await scene.empty('config')
    },
  },
  {
    title: 'in strict order, and with a maxHold, each reader has a claim of its own',
    behaviours: [66],
    async run(scene) {
      const { locks, read } = readers(scene)
      const strict = locks.readWrite('config', { order: 'strict' }).read
      const take = async (count: number, one: () => Promise<Hold>): Promise<void> => {
        const holds = await Promise.all(Array.from({ length: count }, one))
        assert.equal((await scene.line('config'))?.holders.length, count)
        for (const hold of holds) await hold.release()
      }
      await take(3, () => strict.acquire({ lease }))
      await take(3, () => read.acquire({ lease, maxHold: LONG_MS }))
    },
  },
]

/** Readers and writers of one process ask while it writes: in which order they were served then, and how long that took. */
async function serveInTurn(scene: Scene): Promise<string[]> {
  const { read, write } = scene.client({ order: 'cohort' }).readWrite('config')
  const holder = await write.acquire({ lease })
  const served: string[] = []
  const ask = (lock: Lock, name: string) => lock.run(() => void served.push(name), { lease })
  const all = [
    ask(read, 'reader 1'),
    ask(read, 'reader 2'),
    ask(write, 'writer 1'),
    ask(write, 'writer 2'),
    ask(read, 'reader 3'),
    ask(write, 'writer 3'),
  ]
  await scene.waiting('config', 1)
  await holder.release()
  await inTime('everybody', Promise.all(all))
  return served
}

/** All ask in one tick, of a new client in a new space, while one of them reads. */
async function askBesideReader(scene: Scene, kinds: readonly ('reader' | 'writer')[]): Promise<void> {
  const space = `order ${now()} ${Math.random()}`
  const locks = scene.client({ order: 'cohort', space })
  const { read, write } = locks.readWrite('config')
  const holder = await read.acquire({ lease })
  const served: number[] = []
  const all = kinds.map((kind, index) =>
    (kind === 'reader' ? read : write).run(() => void served.push(index), { lease }),
  )
  // So long the first ones come in beside the holder.
  await pass(1)
  await holder.release()
  await inTime('everybody', Promise.all(all))
  assert.deepEqual(
    served,
    kinds.map((_kind, index) => index),
  )
  await locks.close()
}

/** Fences are asked for; another process reads; one more asks, and those who were asked for have gone when the answer comes. */
async function comeLate(
  scene: Scene,
  meanwhile: (first: Hold, closed: Hold) => Promise<unknown>,
): Promise<void> {
  if (!(await scene.tellsOfWaiters())) return
  const { read, store } = readers(scene)
  const closed = await read.acquire({ lease })
  await closed.extend(50)
  const first = await read.acquire({ lease })
  const giveUp = new AbortController()
  const answers = holdAnswers(store)
  const asked = store.count('pulse')
  const gone = settled(read.acquire({ lease, signal: giveUp.signal }))
  await eventually('the asking', () => store.count('pulse') > asked)
  const { fence } = await scene.client().readWrite('config').read.acquire({ lease })
  const late = read.acquire({ lease })
  giveUp.abort()
  await gone
  await meanwhile(first, closed)
  store.heal()
  answers.pass()
  assertIncreasing([fence, (await inTime('the late one', late)).fence])
}

/** From now on no pulse is answered before `pass` is called; each call lets those through that have been made by then. */
function holdAnswers(store: InterceptedStore): { pass(): void } {
  let gate = deferred<void>()
  store.around = async (call, go) => {
    const { promise } = gate
    const reply = await go()
    if (call.method === 'pulse') await promise
    return reply
  }
  const pass = (): void => {
    gate.resolve()
    gate = deferred<void>()
  }
  return { pass }
}

function readers(
  scene: Scene,
  storeTimeout = LONG_MS,
): { read: Lock; write: Lock; store: InterceptedStore; locks: ReturnType<Scene['client']> } {
  const { locks, store } = scene.intercepted({ order: 'cohort', storeTimeout })
  const { read, write } = locks.readWrite('config')
  return { read, write, store, locks }
}

function asksForFences({ method, about }: Call): boolean {
  return method === 'pulse' && (about as readonly Beat[]).some(({ block }) => block !== undefined)
}
