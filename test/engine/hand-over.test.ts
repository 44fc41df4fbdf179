import { expect, it, onTestFinished } from 'vitest'
import { systemEnv } from '../../src/base/env.js'
import type { ClaimReply, Connection, Push, Store } from '../../src/contract/store.js'
import { Engine } from '../../src/engine/engine.js'
import { handOver } from '../../src/engine/hand-over.js'
import type { RequestSpec } from '../../src/engine/spec.js'
import { memory } from '../../src/stores/memory/index.js'

/** A store whose pushes and first answer to a claim can be kept back. */
class Held {
  readonly store: Store
  readonly pushes: Push[] = []
  readonly #inner = memory()
  push: (news: Push) => void = () => {}
  keepsAnswer = false
  answerLate: () => void = () => {}

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

  #wrap(connection: Connection): Connection {
    const claim = async (request: Parameters<Connection['claim']>[0]): Promise<ClaimReply> => {
      const reply = await connection.claim(request)
      if (!this.keepsAnswer) return reply
      this.keepsAnswer = false
      await new Promise<void>((resolve) => {
        this.answerLate = resolve
      })
      return reply
    }
    return new Proxy(connection, {
      get: (target, name) => {
        if (name === 'claim') return claim
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
  const engine = engineOn(held.store, 1500)
  held.keepsAnswer = true
  const entry = await engine.acquire(specOf('x'), { waitMs: 20_000, signal: undefined })
  if (!entry) throw new Error('not granted')
  await handOver(engine, entry)
  held.answerLate()
  // The answer is read before this call is answered.
  await engine.connection.pulse([])
  await engine.releases.allSent()
  expect(await holds(engine, 'x')).toBe(true)
})

it('a request that gave up still takes back what a late answer brings', async () => {
  const held = new Held()
  const engine = engineOn(held.store)
  held.keepsAnswer = true
  const leaving = new AbortController()
  const waiting = engine.acquire(specOf('x'), { waitMs: 20_000, signal: leaving.signal })
  await expect.poll(() => holds(engine, 'x')).toBe(true)
  leaving.abort()
  await expect(waiting).rejects.toMatchObject({ code: 'ABORTED' })
  held.answerLate()
  await expect.poll(() => holds(engine, 'x')).toBe(false)
})
