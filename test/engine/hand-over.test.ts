import { expect, it, onTestFinished } from 'vitest'
import { deferred } from '../../src/base/deferred.js'
import { systemEnv } from '../../src/base/env.js'
import type {
  Beat,
  BeatReply,
  ClaimReply,
  ClaimRequest,
  Connection,
  Push,
  Store,
} from '../../src/contract/store.js'
import { Engine } from '../../src/engine/engine.js'
import { handOver } from '../../src/engine/hand-over.js'
import type { RequestSpec } from '../../src/engine/spec.js'
import { memory } from '../../src/stores/memory/index.js'

/** A store whose pushes, and whose first claim or the answer to it, can be kept back. */
class Held {
  readonly store: Store
  readonly pushes: Push[] = []
  readonly #inner = memory()
  push: (news: Push) => void = () => {}
  keepsClaim = false
  keepsAnswer = false
  losesPulses = false
  readonly #kept = deferred<void>()
  readonly #answered = deferred<ClaimReply>()
  /** The answer that was kept back, once the engine has read it. */
  readonly answered = this.#answered.promise.then(async (reply) => {
    await new Promise((resolve) => setImmediate(resolve))
    return reply
  })

  constructor() {
    const inner = this.#inner
    this.store = {
      name: 'held',
      capabilities: { ...inner.capabilities, answersAtOnce: false },
      connect: (client) => {
        this.push = client.push
        const connection = inner.connect({ ...client, push: (news) => this.pushes.push(news) })
        return this.#wrap(connection)
      },
    }
  }

  /** What was kept back goes on its way. */
  goOn(): void {
    this.#kept.resolve()
  }

  #wrap(connection: Connection): Connection {
    const claim = async (request: ClaimRequest): Promise<ClaimReply> => {
      const [isClaimKept, isAnswerKept] = [this.keepsClaim, this.keepsAnswer]
      this.keepsClaim = false
      this.keepsAnswer = false
      if (isClaimKept) await this.#kept.promise
      const reply = await connection.claim(request)
      if (isAnswerKept) await this.#kept.promise
      if (isClaimKept || isAnswerKept) this.#answered.resolve(reply)
      return reply
    }
    const pulse = (beats: readonly Beat[]): Promise<BeatReply[]> =>
      this.losesPulses ? new Promise(() => {}) : connection.pulse(beats)
    return new Proxy(connection, {
      get: (target, name) => {
        if (name === 'claim') return claim
        if (name === 'pulse') return pulse
        const value = Reflect.get(target, name, target)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
  }
}

function specOf(id: string, leaseMs = 30_000): RequestSpec {
  return {
    resource: 'a',
    permits: 2 ** 30,
    capacity: 2 ** 30,
    leaseMs,
    presenceMs: 30_000,
    maxHoldMs: null,
    owner: null,
    label: null,
    passOn: 'nobody',
    lingerMs: 0,
    newId: () => id,
  }
}

function engineOn(store: Store, storeTimeoutMs = 10_000): Engine {
  const engine = new Engine(store, { env: systemEnv, space: 'default', storeTimeoutMs })
  onTestFinished(() => engine.closing.close(0))
  return engine
}

async function holds(engine: Engine, id: string): Promise<boolean> {
  const [reply] = await engine.connection.pulse([{ resource: 'a', id, leaseMs: 0, presenceMs: 0 }])
  return reply?.status === 'held'
}

it('a hold that was handed over outlives its client, and is used by its id', async () => {
  const store = memory()
  const [one, other] = [engineOn(store), engineOn(store)]
  const entry = await one.acquire(specOf('x'), { waitMs: 0, signal: undefined })
  if (!entry) throw new Error('not granted')
  const { id, fence, leaseMs } = await handOver(one, entry)
  expect(id).toBe('x')
  expect(fence).toBe(entry.request.fence)
  expect(leaseMs).toBeGreaterThan(20_000)
  expect(one.leases.size).toBe(0)
  await one.closing.close(5000)
  expect(await holds(other, 'x')).toBe(true)
  expect(await other.connection.release('a', 'x')).toBe(true)
})

it('the late push of its grant does not take it away', async () => {
  const held = new Held()
  const engine = engineOn(held.store)
  const first = await engine.acquire({ ...specOf('first') }, { waitMs: 0, signal: undefined })
  if (!first) throw new Error('not granted')
  const waiting = engine.acquire(specOf('x'), { waitMs: 20_000, signal: undefined })
  await expect.poll(() => engine.leases.get('x')?.phase).toBe('waiting')
  await engine.leave(first)
  // The pulse finds the grant, while its push is still on its way.
  await expect.poll(() => held.pushes.some(({ type }) => type === 'granted')).toBe(true)
  engine.pulse.hurryAll()
  const entry = await waiting
  if (!entry) throw new Error('not granted')
  await handOver(engine, entry)
  for (const news of held.pushes) held.push(news)
  await engine.releases.allSent()
  expect(await holds(engine, 'x')).toBe(true)
})

it('the late answer to its first claim does not take it away', async () => {
  const held = new Held()
  // An attempt ends after a third of that, and the claim is sent again.
  const engine = engineOn(held.store, 6000)
  held.keepsAnswer = true
  const entry = await engine.acquire(specOf('x'), { waitMs: 20_000, signal: undefined })
  if (!entry) throw new Error('not granted')
  await handOver(engine, entry)
  held.goOn()
  await held.answered
  await engine.releases.allSent()
  expect(await holds(engine, 'x')).toBe(true)
})

it('a request that gave up takes back what a claim brings that arrives late', async () => {
  const held = new Held()
  const engine = engineOn(held.store)
  held.keepsClaim = true
  const leaving = new AbortController()
  const waiting = engine.acquire(specOf('x'), { waitMs: 20_000, signal: leaving.signal })
  leaving.abort()
  await expect(waiting).rejects.toMatchObject({ code: 'ABORTED' })
  await engine.releases.allSent()
  held.goOn()
  expect(await held.answered).toMatchObject({ status: 'granted' })
  await expect.poll(() => holds(engine, 'x')).toBe(false)
})

it('a hold that had to wait is renewed first: its place in line may have been shorter', async () => {
  const engine = engineOn(memory())
  const first = await engine.acquire(specOf('first'), { waitMs: 0, signal: undefined })
  if (!first) throw new Error('not granted')
  const waiting = engine.acquire(specOf('x', 120_000), { waitMs: 20_000, signal: undefined })
  await expect.poll(() => engine.leases.get('x')?.phase).toBe('waiting')
  await engine.leave(first)
  const entry = await waiting
  if (!entry) throw new Error('not granted')
  expect((await handOver(engine, entry)).leaseMs).toBeGreaterThan(60_000)
})

it('a hold that cannot be renewed before it is handed over is given back', async () => {
  const held = new Held()
  const engine = engineOn(held.store, 300)
  const first = await engine.acquire(specOf('first'), { waitMs: 0, signal: undefined })
  if (!first) throw new Error('not granted')
  const waiting = engine.acquire(specOf('x', 120_000), { waitMs: 20_000, signal: undefined })
  await expect.poll(() => engine.leases.get('x')?.phase).toBe('waiting')
  await engine.leave(first)
  await expect.poll(() => held.pushes.some(({ type }) => type === 'granted')).toBe(true)
  for (const news of held.pushes) held.push(news)
  const entry = await waiting
  if (!entry) throw new Error('not granted')
  held.losesPulses = true
  await expect(handOver(engine, entry)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  held.losesPulses = false
  expect(engine.leases.size).toBe(0)
  await engine.releases.allSent()
  expect(await holds(engine, 'x')).toBe(false)
})

it('a hold that was revoked at the moment of its grant is not handed over', async () => {
  const held = new Held()
  const engine = engineOn(held.store)
  const entry = await engine.acquire(specOf('x'), { waitMs: 0, signal: undefined })
  if (!entry) throw new Error('not granted')
  held.push({ type: 'lost', resource: 'a', id: 'x' })
  await expect(handOver(engine, entry)).rejects.toMatchObject({ code: 'HOLD_LOST' })
})
