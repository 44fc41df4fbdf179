import assert from 'node:assert/strict'
import type { Hold } from '../../primitives/hold.js'
import type { Holdfast } from '../../primitives/holdfast.js'
import type { AcquireOptions } from '../../primitives/options.js'
import { assertIncreasing, eventually, inTime, pass, settled, Watched } from './checks.js'
import type { InterceptedStore } from './intercepted-store.js'
import { LONG_MS, RENEWED_MS, type Scene } from './scene.js'
import type { CaseSpec } from './suite.js'

/**
 * Neighbours of one process who stand right behind each other in the store's line. Where the store
 * says so, the hold is passed on to them, in the order of the line. Whatever the suite's own order
 * is, these clients keep to the order of arrival.
 */
export const heirCases: readonly CaseSpec[] = [
  {
    title:
      'neighbours right behind each other have the hold passed on, each with a greater fence, and then it is the turn of others',
    behaviours: [56, 66, 75],
    async run(scene) {
      const { locks, store, other } = await behindAnother(scene)
      const five = await ask(scene, locks, 5)
      const last = new Watched(scene.lock('door').acquire({ lease: LONG_MS }))
      await scene.waiting('door', 6)
      const [late] = await ask(scene, locks, 1, {}, 7)
      if (!(await namesHeirs(store, other))) return
      const held = holdReleases(store)
      const fences = [other.fence]
      const left: Promise<boolean>[] = []
      for (const waiter of five) {
        const hold = await inTime('one of the five', waiter.promise)
        assert.equal(hold.isValid, true)
        fences.push(hold.fence)
        left.push(hold.release())
      }
      assert.deepEqual([last.isSettled, late?.isSettled], [false, false])
      store.heal()
      for (const go of held) go()
      assert.deepEqual(await inTime('their releases', Promise.all(left)), Array(5).fill(true))
      const hold = await inTime('the one of another process', last.promise)
      assert.equal(late?.isSettled, false, 'it overtook the one of another process')
      await hold.release()
      const end = await inTime('the one who came after it', late?.promise ?? never())
      assertIncreasing([...fences, hold.fence, end.fence])
      await end.release()
      await scene.empty('door')
    },
  },
  {
    title: 'a hold that was passed on in order is renewed, and shown by its own client as it is',
    behaviours: [31, 56, 66],
    async run(scene) {
      const { locks, store, other } = await behindAnother(scene)
      const [one, two] = await ask(scene, locks, 2, { lease: 2 * RENEWED_MS })
      if (!one || !two || !(await namesHeirs(store, other))) return
      await (await inTime('the first', one.promise)).release()
      const second = await inTime('the second', two.promise)
      for await (const resource of locks.inspect({ prefix: 'door' }))
        assert.equal(resource.holders.at(-1)?.fence, second.fence)
      await pass(RENEWED_MS * 2.4)
      assert.equal(second.isValid, true)
      assert.equal(await second.release(), true)
      await scene.empty('door')
    },
  },
  {
    title: 'an heir that has given up is passed by, and the next one has the hold',
    behaviours: [56, 66],
    async run(scene) {
      const { locks, store, other } = await behindAnother(scene)
      const giveUp = new AbortController()
      const [one] = await ask(scene, locks, 1)
      const [gone] = await ask(scene, locks, 1, { signal: giveUp.signal }, 2)
      const [three] = await ask(scene, locks, 1, {}, 3)
      if (!one || !gone || !three || !(await namesHeirs(store, other))) return
      const first = await inTime('the first', one.promise)
      const held = holdReleases(store)
      giveUp.abort()
      await eventually('the second gives up', () => gone.isSettled)
      const leaving = first.release()
      const third = await inTime('the third', three.promise)
      assert.ok(third.fence > first.fence)
      store.heal()
      for (const go of held) go()
      assert.equal(await leaving, true)
      assert.equal(await third.release(), true)
      await scene.empty('door')
    },
  },
  {
    title: 'after a hold that was extended, or has other options, the next one comes by the store, in order',
    behaviours: [39, 56, 66],
    async run(scene) {
      const { locks, store, other } = await behindAnother(scene)
      const [one] = await ask(scene, locks, 1)
      const [two] = await ask(scene, locks, 1, { label: 'another' }, 2)
      const [three] = await ask(scene, locks, 1, {}, 3)
      const last = new Watched(scene.lock('door').acquire({ lease: LONG_MS }))
      await scene.waiting('door', 4)
      if (!one || !two || !three || !(await namesHeirs(store, other))) return
      const fences: number[] = []
      for (const waiter of [one, two, three]) {
        const hold = await inTime('the next one', waiter.promise)
        fences.push(hold.fence)
        if (waiter === two) {
          assert.equal((await scene.line('door'))?.holders[0]?.label, 'another')
          await hold.extend(100)
        }
        await hold.release()
      }
      fences.push((await inTime('the one of another process', last.promise)).fence)
      assertIncreasing(fences)
    },
  },
  {
    title:
      'when a hold that was passed on in order is broken, the next one in line has the lock, and nobody stands in its way',
    behaviours: [26, 43, 66],
    async run(scene) {
      const { locks, store, other } = await behindAnother(scene)
      const [one, two, three] = await ask(scene, locks, 3)
      const last = new Watched(scene.lock('door').acquire({ lease: LONG_MS }))
      await scene.waiting('door', 4)
      if (!one || !two || !three || !(await namesHeirs(store, other))) return
      await (await inTime('the first', one.promise)).release()
      const second = await inTime('the second', two.promise)
      const { signal } = second
      await scene.client().breakHold('door')
      await eventually('the loss', () => signal.aborted)
      const third = await inTime('the third', three.promise)
      assert.equal(last.isSettled, false)
      assert.equal(await second.release(), false)
      assert.equal(third.isValid, true)
      assert.equal(await third.release(), true)
      const hold = await inTime('the one of another process', last.promise)
      assertIncreasing([second.fence, third.fence, hold.fence])
      await hold.release()
      await scene.empty('door')
    },
  },
  {
    title:
      'a hold that ends while it is passed on in order is lost for the one who has it, and the others keep their places',
    behaviours: [42, 44, 66],
    async run(scene) {
      const { locks, store, other } = await behindAnother(scene)
      const [one, two, three] = await ask(scene, locks, 3, { lease: RENEWED_MS })
      const last = new Watched(scene.lock('door').acquire({ lease: LONG_MS }))
      await scene.waiting('door', 4)
      if (!one || !two || !three || !(await namesHeirs(store, other))) return
      await (await inTime('the first', one.promise)).release()
      const second = await inTime('the second', two.promise)
      store.cut('pulse')
      await eventually('the loss', () => !second.isValid)
      store.heal()
      const next = await inTime('the next one', Promise.race([three.promise, last.promise]))
      assert.ok(next.fence > second.fence)
      await next.release()
      await settled(
        inTime(
          'everybody',
          Promise.all([three.promise, last.promise].map(async (each) => (await each).release())),
        ),
      )
      await scene.empty('door')
    },
  },
]

function never(): Promise<never> {
  return new Promise(() => {})
}

/** A client that keeps to the order of arrival, behind a holder of another process. */
async function behindAnother(
  scene: Scene,
): Promise<{ locks: Holdfast; store: InterceptedStore; other: Hold }> {
  const other = await scene.lock('door').acquire({ lease: LONG_MS })
  return { ...scene.intercepted({ order: 'strict', storeTimeout: LONG_MS }), other }
}

/** So many more ask, one after the other; then there are `waiting` in line. */
async function ask(
  scene: Scene,
  locks: Holdfast,
  count: number,
  options: AcquireOptions = {},
  waiting = count,
): Promise<Watched<Hold>[]> {
  // The lease is the default one: a much longer one is renewed once before it is passed on.
  const acquire = () => new Watched(scene.lock('door', locks).acquire(options))
  const all = Array.from({ length: count }, acquire)
  await scene.waiting('door', waiting)
  return all
}

/** The other one leaves: whether the store says who comes right behind the one that holds now. */
async function namesHeirs(store: InterceptedStore, other: Hold): Promise<boolean> {
  let heirs: readonly string[] | undefined
  store.onPush = (news, deliver) => {
    if (news.type === 'granted') heirs ??= news.heirs ?? []
    deliver()
  }
  await other.release()
  await eventually('the grant', () => heirs !== undefined)
  return (heirs?.length ?? 0) > 0
}

/** Keeps releases from being sent, until they are called in turn. */
function holdReleases(store: InterceptedStore): (() => unknown)[] {
  const held: (() => unknown)[] = []
  store.around = (call, go) =>
    call.method === 'release'
      ? new Promise((resolve, reject) => held.push(() => go().then(resolve, reject)))
      : go()
  return held
}
