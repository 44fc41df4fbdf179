import assert from 'node:assert/strict'
import { Holdfast, type HoldfastOptions } from '../../primitives/holdfast.js'
import type { AcquireOptions } from '../../primitives/options.js'
import { rejectsWith, throwsWith } from './checks.js'
import type { CaseSpec } from './suite.js'

/** What callers without types can hand in. */
function wrong<T>(value: unknown): T {
  return value as T
}

const WRONG_NAMES: readonly unknown[] = ['', undefined, null, 42, {}, ['a'], Symbol('door')]
const WRONG_DURATIONS: readonly unknown[] = [
  -1,
  Number.NaN,
  '',
  'soon',
  '5 parsecs',
  '-5s',
  '1e3',
  null,
  {},
  true,
]
const WRONG_TEXTS: readonly unknown[] = ['', 42, null, 'x'.repeat(1001)]

const WRONG_COUNTS: readonly unknown[] = [0, -1, 1.5, Number.NaN, '5', null, {}, true]

/** Every option that takes a duration, with what is wrong for it alone. */
const DURATIONS: Readonly<Record<'lease' | 'maxHold' | 'wait', readonly unknown[]>> = {
  // A hold that outlives a dead holder for ever is not offered: neither 0 nor Infinity.
  lease: [0, 1, Infinity],
  maxHold: [0],
  wait: [-Infinity],
}

function wrongOptions(): AcquireOptions[] {
  const all: unknown[] = []
  for (const [name, values] of Object.entries(DURATIONS))
    for (const value of [...WRONG_DURATIONS, ...values]) all.push({ [name]: value })
  for (const name of ['owner', 'label']) for (const value of WRONG_TEXTS) all.push({ [name]: value })
  for (const value of WRONG_COUNTS) all.push({ maxWaiters: value })
  for (const value of [null, {}, 'signal', new AbortController()]) all.push({ signal: value })
  return all.map((options) => wrong<AcquireOptions>(options))
}

export const argumentCases: readonly CaseSpec[] = [
  {
    title: 'a name that is no name is refused before anything is sent',
    behaviours: [14],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      for (const name of WRONG_NAMES) {
        throwsWith('INVALID_ARGUMENT', () => locks.mutex(wrong(name)))
        await rejectsWith('INVALID_ARGUMENT', locks.breakHold(wrong(name)))
      }
      assert.equal(store.calls.length, 0)
    },
  },
  {
    title: 'wrong options of an acquisition are refused before anything is sent',
    behaviours: [14],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const door = locks.mutex('door')
      for (const options of wrongOptions()) {
        await rejectsWith('INVALID_ARGUMENT', door.acquire(options))
        await rejectsWith(
          'INVALID_ARGUMENT',
          door.run(async () => assert.fail('the work was run'), options),
        )
        if (!('wait' in options)) await rejectsWith('INVALID_ARGUMENT', door.tryAcquire(options))
      }
      assert.equal(store.calls.length, 0)
    },
  },
  {
    title: 'options that are no object are refused, not ignored',
    behaviours: [14],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const door = locks.mutex('door')
      for (const options of [null, '5s', 5000, true]) {
        await rejectsWith('INVALID_ARGUMENT', door.acquire(wrong(options)))
        await rejectsWith('INVALID_ARGUMENT', door.tryAcquire(wrong(options)))
        await rejectsWith(
          'INVALID_ARGUMENT',
          door.run(async () => {}, wrong(options)),
        )
      }
      assert.equal(store.calls.length, 0)
    },
  },
  {
    title: 'work that is no function is refused before anything is sent',
    behaviours: [14],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      for (const work of [undefined, null, 'work', Promise.resolve(), {}])
        await rejectsWith('INVALID_ARGUMENT', locks.mutex('door').run(wrong(work)))
      assert.equal(store.calls.length, 0)
    },
  },
  {
    title: 'wrong durations and passed holds are refused before anything is sent',
    behaviours: [14],
    async run(scene) {
      const { locks, store } = scene.intercepted()
      const hold = await locks.mutex('door').acquire()
      const calls = store.calls.length
      for (const duration of [...WRONG_DURATIONS, 0, Infinity])
        await rejectsWith('INVALID_ARGUMENT', hold.extend(wrong(duration)))
      const passed = [undefined, '', 'nonsense', 'holdfast1.', 'holdfast1.bm9uc2Vuc2U', 42, {}]
      for (const text of passed) await rejectsWith('INVALID_ARGUMENT', locks.adopt(wrong(text)))
      for (const fence of [Number.NaN, 1.5, '7', Infinity, null])
        await rejectsWith('INVALID_ARGUMENT', locks.breakHold('door', { fence: wrong(fence) }))
      for (const prefix of [null, 42, {}])
        await rejectsWith('INVALID_ARGUMENT', locks.inspect({ prefix: wrong(prefix) }).next())
      assert.equal(store.calls.length, calls)
      assert.equal(hold.isValid, true)
    },
  },
  {
    title: 'a client is not made of wrong options, nor of something that is no store',
    behaviours: [14],
    async run(scene) {
      const all: unknown[] = [{ space: '' }, { space: 42 }, { presence: 0 }, { presence: 'long' }]
      for (const maxWaiters of WRONG_COUNTS) all.push({ maxWaiters })
      all.push({ storeTimeout: 0 }, { storeTimeout: -1 }, { storeTimeout: Number.NaN })
      for (const options of all)
        throwsWith('INVALID_ARGUMENT', () => scene.client(wrong<HoldfastOptions>(options)))
      for (const store of [undefined, null, {}, 'sqlite:./locks.db'])
        throwsWith('INVALID_ARGUMENT', () => new Holdfast(wrong(store)))
      for (const url of ['', 'locks.db', 'carrier-pigeon://coop', '://', 42, undefined])
        await rejectsWith('INVALID_ARGUMENT', Holdfast.open(wrong(url)))
    },
  },
]
