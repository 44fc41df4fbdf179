import { describe, expect, it } from 'vitest'
import type { ClaimRequest, Connection, LineView, Push, Store } from '../../src/contract/store.js'
import { memory } from '../../src/stores/memory/index.js'
import { type LossyOptions, type LossyStore, lossyStore } from '../../src/testing/network.js'
import { type VirtualProcess, VirtualWorld } from '../../src/testing/virtual-env.js'

/** Two processes, `near` and `far`, on one store; `direct` sees the store without the network. */
class Stage {
  readonly world = new VirtualWorld({ seed: 5 })
  readonly server = this.world.env({ name: 'server' })
  readonly near = this.world.env({ name: 'near' })
  readonly far = this.world.env({ name: 'far' })
  readonly news: Push[] = []
  readonly network: LossyStore
  readonly direct: Connection
  readonly nearby: Connection
  readonly faraway: Connection

  constructor(options: LossyOptions = {}) {
    const store = memory({ env: this.server })
    this.network = lossyStore(store, this.world, { server: this.server, latencyMs: [5, 5], ...options })
    const client = (id: string, push: (news: Push) => void) => ({ id, space: 's', push })
    this.direct = store.connect(client('direct', () => {}))
    this.nearby = this.network.from(this.near).connect(client('near', (news) => this.news.push(news)))
    this.faraway = this.network.from(this.far).connect(client('far', () => {}))
  }

  async line(): Promise<readonly string[]> {
    const views: LineView[] = []
    for await (const view of this.direct.inspect({ prefix: '' })) views.push(view)
    return views.flatMap((view) => view.claims.map((claim) => claim.id))
  }

  /** When, in virtual time, the promise settles, and how. */
  async outcome(promise: unknown): Promise<{ atMs: number; value?: unknown; error?: unknown }> {
    const settled = Promise.resolve(promise).then(
      (value) => ({ atMs: this.world.timeMs, value }),
      (error: unknown) => ({ atMs: this.world.timeMs, error }),
    )
    return this.world.until(settled)
  }
}

function claim(id: string, change: Partial<ClaimRequest> = {}): ClaimRequest {
  const times = { leaseMs: 60_000, presenceMs: 60_000, maxHoldMs: null }
  return {
    resource: 'r',
    id,
    permits: 1,
    capacity: 1,
    mode: 'queue',
    floor: 0,
    block: 1,
    info: '',
    ...times,
    ...change,
  }
}

const unavailable = expect.objectContaining({ code: 'STORE_UNAVAILABLE', retryable: true, store: 'memory' })

describe('a lossy store', () => {
  it('takes time each way', async () => {
    const stage = new Stage()
    const reply = stage.outcome(stage.nearby.claim(claim('a')))
    await expect(reply).resolves.toMatchObject({ atMs: 10, value: { status: 'granted', leaseMs: 60_000 } })
  })

  it('passes every call on', async () => {
    const { nearby, world } = new Stage()
    const all = async (): Promise<unknown[]> => {
      await nearby.claim(claim('a'))
      const written = await nearby.write({ key: 'k', expect: null, value: 'v', retentionMs: null })
      await nearby.resize('r', 1, 2)
      const views: LineView[] = []
      for await (const view of nearby.inspect({ prefix: '' })) views.push(view)
      return [
        written.written,
        (await nearby.read('k', false))?.value,
        views.map((view) => view.capacity),
        (await nearby.pulse([{ resource: 'r', id: 'a', leaseMs: 1, presenceMs: 1 }])).map(
          ({ status }) => status,
        ),
        (await nearby.evict('r', null)).map(({ id }) => id),
        await nearby.release('r', 'a'),
      ]
    }
    await expect(world.until(all())).resolves.toEqual([true, 'v', [2], ['held'], ['a'], false])
  })

  it('lies between a client and the run of its server, too', async () => {
    const { world, server, near } = new Stage()
    const origin = { link: 1, run: async () => 'first' }
    const store = memory({ env: server })
    const connect: Store['connect'] = (client) => Object.assign(store.connect(client), { origin })
    const network = lossyStore({ ...store, capabilities: store.capabilities, connect }, world, {
      server,
      latencyMs: [5, 5],
    })
    const connection = network.from(near).connect({ id: 'near', space: 's', push() {} })
    expect(await world.until(Promise.resolve(connection.origin?.run()))).toBe('first')
    expect(world.timeMs).toBe(10)
    origin.link = 2
    expect(connection.origin?.link).toBe(2)
    expect(new Stage().nearby.origin).toBeUndefined()
  })

  it('fails a call after a while when its request is lost, and nothing has happened', async () => {
    const stage = new Stage({ lossRate: 1, failAfterMs: 300 })
    await expect(stage.outcome(stage.nearby.claim(claim('a')))).resolves.toEqual({
      atMs: 300,
      error: unavailable,
    })
    expect(await stage.line()).toEqual([])
  })

  it('fails a call after a while when its reply is lost, though it has happened', async () => {
    const stage = new Stage()
    stage.network.partition(stage.near, 'replies')
    await expect(stage.outcome(stage.nearby.claim(claim('a')))).resolves.toMatchObject({ error: unavailable })
    expect(await stage.line()).toEqual(['a'])
  })

  it('hangs until the far deadline, where it is told to', async () => {
    const stage = new Stage({ lossRate: 1, hangRate: 1, hangMs: 40_000 })
    await expect(stage.outcome(stage.nearby.pulse([]))).resolves.toMatchObject({
      atMs: 40_000,
      error: unavailable,
    })
  })

  it('lets a claim arrive long after its caller gave up', async () => {
    const stage = new Stage({ lateRate: 1, lateMs: [2_000, 2_000] })
    await expect(stage.outcome(stage.nearby.claim(claim('a')))).resolves.toMatchObject({ atMs: 1_000 })
    expect(await stage.line()).toEqual([])
    await stage.world.run(3_000)
    expect(await stage.line()).toEqual(['a'])
  })

  it('doubles requests, and answers once', async () => {
    const stage = new Stage({ doubleRate: 1, latencyMs: [1, 50] })
    await expect(stage.outcome(stage.nearby.claim(claim('a')))).resolves.toMatchObject({
      value: { status: 'granted' },
    })
    // The second copy of the release finds nothing; which of the two answers comes first is a matter of luck.
    await stage.outcome(stage.nearby.release('r', 'a'))
    await stage.world.run(stage.world.timeMs + 100)
    expect(await stage.line()).toEqual([])
  })

  it('passes the errors of the store on', async () => {
    const stage = new Stage()
    await stage.nearby.close()
    const closed = expect.objectContaining({ code: 'CLOSED' })
    await expect(stage.nearby.pulse([])).rejects.toEqual(closed)
  })

  it('lets requests under way arrive after close, and tells nothing any more', async () => {
    const stage = new Stage()
    const asked = stage.outcome(stage.nearby.claim(claim('a')))
    await stage.nearby.close()
    await asked
    expect(await stage.line()).toEqual(['a'])
    await stage.direct.evict('r', null)
    await stage.world.run(100)
    expect(stage.news).toEqual([])
  })

  it('lets pushes overtake replies, and replies pushes', async () => {
    const stage = new Stage({ latencyMs: [1, 20] })
    const firsts = new Set<string>()
    for (let round = 1; round <= 20; round++) {
      const newsBefore = stage.news.length
      await stage.direct.claim(claim(`holder${round}`))
      const asking = Promise.resolve(stage.nearby.claim(claim(`waiter${round}`)))
      const asked = asking.then(() => stage.news.length > newsBefore)
      while (!(await stage.line()).includes(`waiter${round}`)) await stage.world.run(stage.world.timeMs + 1)
      await stage.direct.release('r', `holder${round}`)
      firsts.add((await stage.world.until(asked)) ? 'push' : 'reply')
      await stage.direct.release('r', `waiter${round}`)
      await stage.world.run(stage.world.timeMs + 100)
    }
    expect([...firsts].sort()).toEqual(['push', 'reply'])
  })
})

describe('a partition', () => {
  it('cuts one process off and leaves the other', async () => {
    const stage = new Stage()
    stage.network.partition(stage.near)
    await expect(stage.outcome(stage.nearby.pulse([]))).resolves.toMatchObject({ error: unavailable })
    await expect(stage.outcome(stage.faraway.pulse([]))).resolves.toMatchObject({ value: [] })
    stage.network.mend(stage.near)
    await expect(stage.outcome(stage.nearby.pulse([]))).resolves.toMatchObject({ value: [] })
  })

  it('catches what is under way', async () => {
    const stage = new Stage()
    const asked = stage.outcome(stage.nearby.claim(claim('a')))
    stage.network.partition(stage.near, 'requests')
    await expect(asked).resolves.toMatchObject({ error: unavailable })
    expect(await stage.line()).toEqual([])
  })

  it('swallows pushes, and leaves a gap when it ends', async () => {
    const stage = new Stage()
    await stage.outcome(stage.nearby.claim(claim('a')))
    stage.network.partition(stage.near)
    await stage.direct.evict('r', null)
    await stage.world.run(1_000)
    expect(stage.news).toEqual([])
    stage.network.heal()
    await stage.world.run(2_000)
    expect(stage.news).toEqual([{ type: 'gap' }])
  })

  it('and every fault end when the network heals', async () => {
    const stage = new Stage({ lossRate: 1, lateRate: 1, doubleRate: 1, pushLossRate: 1, hangRate: 1 })
    stage.network.partition(stage.near)
    stage.network.heal()
    await expect(stage.outcome(stage.nearby.claim(claim('a')))).resolves.toMatchObject({ atMs: 10 })
    await stage.direct.evict('r', null)
    await stage.world.run(100)
    expect(stage.news).toEqual([{ type: 'lost', resource: 'r', id: 'a' }])
  })

  it('is not needed to lose pushes', async () => {
    const stage = new Stage()
    stage.network.set({ pushLossRate: 1 })
    await stage.outcome(stage.nearby.claim(claim('a')))
    await stage.direct.evict('r', null)
    await stage.world.run(100)
    expect(stage.news).toEqual([])
  })
})

describe('a process behind a lossy store', () => {
  const settledAt = (stage: Stage, call: Promise<unknown>): { at: number | null } => {
    const note: { at: number | null } = { at: null }
    const settle = (): void => {
      note.at = stage.world.timeMs
    }
    call.then(settle, settle)
    return note
  }

  const pausing: [string, (stage: Stage) => VirtualProcess][] = [
    ['itself', (stage) => stage.near],
    ['its store', (stage) => stage.server],
  ]
  it.each(pausing)('gets its reply after the pause of %s', async (_who, processOf) => {
    const stage = new Stage({ failAfterMs: 60_000 })
    const settled = settledAt(stage, Promise.resolve(stage.nearby.claim(claim('a'))))
    processOf(stage).pause()
    await stage.world.run(5_000)
    expect(settled.at).toBeNull()
    processOf(stage).resume()
    await stage.world.run(6_000)
    expect(settled.at).toBeGreaterThanOrEqual(5_000)
    expect(settled.at).toBeLessThanOrEqual(5_010)
  })

  it('hears nothing after its death, though its request arrives', async () => {
    const stage = new Stage()
    const settled = settledAt(stage, Promise.resolve(stage.nearby.claim(claim('a'))))
    stage.near.kill()
    await stage.direct.evict('r', null)
    await stage.world.run(120_000)
    expect(settled.at).toBeNull()
    expect(stage.news).toEqual([])
  })

  it('lives the same life again by the same seed', async () => {
    const life = async (): Promise<unknown[]> => {
      const stage = new Stage({ latencyMs: [1, 50], lossRate: 0.3, lateRate: 0.2, doubleRate: 0.2 })
      const lives: unknown[] = []
      for (let index = 0; index < 20; index++) {
        const { atMs, error } = await stage.outcome(stage.nearby.claim(claim(`k${index}`)))
        lives.push(atMs, error instanceof Error)
      }
      return lives
    }
    expect(await life()).toEqual(await life())
  })
})
