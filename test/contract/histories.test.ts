import { describe, expect, it } from 'vitest'
import type { Env } from '../../src/base/env.js'
import type { Connection, Store } from '../../src/contract/store.js'
import { memory } from '../../src/stores/memory/index.js'
import { storeHistories } from '../../src/testing/histories.js'

/** HOLDFAST_RUNS=20000 runs more of them. */
const RUNS = Number(process.env['HOLDFAST_RUNS'] ?? 500)

describe('generated histories on the memory store', () => {
  it(
    'agree with the model while time passes',
    async () => {
      await storeHistories({ makeStore: (env) => memory({ env }), runs: RUNS })
    },
    RUNS * 60,
  )

  it('agree with the model on a clock that cannot be injected', async () => {
    await storeHistories({ makeStore: () => memory(), runs: 100, clock: 'server', fences: 'resource' })
  }, 60_000)

  it('agree with the model where news come late, and some that it knows nothing of come between', async () => {
    await storeHistories({ makeStore: (env) => tellingLate(memory({ env })), runs: 20 })
  }, 60_000)
})

/** A store whose news are under way for a while; that others wait is told sooner, when the next call is made already. */
function tellingLate(store: Store): Store {
  return {
    name: store.name,
    capabilities: store.capabilities,
    connect: ({ push, ...client }) =>
      store.connect({
        ...client,
        push: (news) => void setTimeout(push, news.type === 'wanted' ? 1 : 10, news),
      }),
  }
}

/** A memory store with one call changed. */
function broken(store: Store, change: (inner: Connection) => Partial<Connection>): Store {
  return {
    name: store.name,
    capabilities: store.capabilities,
    connect(client) {
      const inner = store.connect(client)
      const unchanged: Connection = {
        claim: (request) => inner.claim(request),
        pulse: (beats) => inner.pulse(beats),
        release: (resource, id) => inner.release(resource, id),
        evict: (resource, fence) => inner.evict(resource, fence),
        cancel: (resource, id) => inner.cancel(resource, id),
        resize: (resource, declared, capacity) => inner.resize(resource, declared, capacity),
        read: (key, watch) => inner.read(key, watch),
        write: (written) => inner.write(written),
        states: (prefix) => inner.states(prefix),
        inspect: (query) => inner.inspect(query),
        close: () => inner.close(),
      }
      return { ...unchanged, ...change(inner) }
    },
  }
}

describe('generated histories find', () => {
  const bugs: Record<string, (inner: Connection) => Partial<Connection>> = {
    'a release that always succeeds': (inner) => ({
      async release(resource, id) {
        await inner.release(resource, id)
        return true
      },
    }),
    'a pulse that joins the line again': (inner) => ({
      async pulse(beats) {
        for (const { resource, id, leaseMs, presenceMs } of beats) {
          const terms = {
            permits: 1,
            capacity: 3,
            maxHoldMs: null,
            mode: 'queue' as const,
            floor: 0,
            block: 1,
            info: '',
          }
          await inner.claim({ resource, id, leaseMs, presenceMs, ...terms })
        }
        return inner.pulse(beats)
      },
    }),
    'a block that is not reserved': (inner) => ({
      claim: (request) => inner.claim({ ...request, block: 1 }),
    }),
    'a bound that is ignored': (inner) => ({
      claim: ({ maxWaiters: _maxWaiters, ...request }) => inner.claim(request),
    }),
    'a bound that counts one too many': (inner) => ({
      claim: ({ maxWaiters = Infinity, ...request }) =>
        inner.claim(maxWaiters === Infinity ? request : { ...request, maxWaiters: maxWaiters + 1 }),
    }),
    'named fences of which only the first is reserved': (inner) => ({
      pulse: (beats) =>
        inner.pulse(
          beats.map(({ fences, ...beat }) => (fences ? { ...beat, fences: { ...fences, count: 1 } } : beat)),
        ),
    }),
    'named fences that are refused in silence': (inner) => ({
      pulse: (beats) => inner.pulse(beats.map(({ fences: _fences, ...beat }) => beat)),
    }),
    'a wait that promises too low a fence': (inner) => ({
      async claim(request) {
        const reply = await inner.claim(request)
        return reply.status === 'waiting' ? { ...reply, grantsAbove: 0 } : reply
      },
    }),
    'a watch that nobody serves': (inner) => ({ read: (key) => inner.read(key, false) }),
  }

  it.each(Object.entries(bugs))(
    '%s',
    async (_name, change) => {
      const makeStore = (env: Env) => broken(memory({ env }), change)
      await expect(storeHistories({ makeStore, pushPatienceMs: 20 })).rejects.toThrow(
        /differs from the model/,
      )
    },
    60_000,
  )

  it('the same short history again by its seed and path', async () => {
    const failure = (options: { seed: number; path?: string }): Promise<string> =>
      storeHistories({
        ...options,
        makeStore: (env) =>
          broken(memory({ env }), (inner) => ({ release: (resource) => inner.release(resource, '') })),
      }).then(
        () => 'no failure',
        (error: Error) => error.message,
      )
    const first = await failure({ seed: 7 })
    const path = /path: '([\d:]+)'/.exec(first)?.[1] ?? 'none'
    const story = (text: string): string => text.slice(text.indexOf('\n\n'))
    expect(first).toContain('seed: 7')
    expect(first).toMatch(/c\d claim \{resource: /)
    expect(story(await failure({ seed: 7, path }))).toBe(story(first))
  }, 60_000)
})
