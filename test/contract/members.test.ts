import { describe, expect, it } from 'vitest'
import { EXCLUSIVE } from '../../src/contract/constants.js'
import type { ClaimReply, ClaimRequest, Connection, Granted, Push } from '../../src/contract/store.js'
import { type LossyOptions, type LossyStore, lossyStore } from '../../src/testing/network.js'
import { MemberConnection } from '../../src/testing/simulation/members/connection.js'
import { MemberLedger } from '../../src/testing/simulation/members/ledger.js'
import {
  type Kept,
  type MemberFault,
  type MemberKind,
  MemberServer,
} from '../../src/testing/simulation/members/server.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

interface StageOptions extends LossyOptions {
  kind?: MemberKind
  fault?: MemberFault
}

/** One member, and two processes that are connected to it. */
class Stage {
  readonly world = new VirtualWorld({ seed: 5 })
  readonly server: MemberServer
  readonly network: LossyStore
  readonly news: Push[] = []
  readonly near: Connection
  readonly far: Connection

  constructor({ kind = 'volatile', fault = {}, ...options }: StageOptions = {}) {
    const process = this.world.env({ name: 'm1' })
    this.server = new MemberServer({ process, ledger: new MemberLedger(3), kind, fault })
    this.network = lossyStore(this.server.store, this.world, {
      server: process,
      latencyMs: [5, 5],
      ...options,
    })
    this.near = this.#connect('near', (news) => this.news.push(news))
    this.far = this.#connect('far', () => {})
  }

  #connect(name: string, push: (news: Push) => void): Connection {
    const process = this.world.env({ name })
    return new MemberConnection(this.network.from(process), { id: name, space: 's', push }, process)
  }

  get link(): number | undefined {
    return this.near.origin?.link
  }

  /** The answer, or null if the call fails. */
  async answer<T>(call: T | Promise<T>): Promise<T | null> {
    return this.world.until(Promise.resolve(call).catch(() => null))
  }

  async restart(kept: Kept): Promise<void> {
    this.server.stop()
    this.server.start(kept)
    await this.pass(2_000)
  }

  async pass(ms: number): Promise<void> {
    await this.world.run(this.world.timeMs + ms)
  }
}

function claim(id: string, change: Partial<ClaimRequest> = {}): ClaimRequest {
  const times = { leaseMs: 60_000, presenceMs: 60_000, maxHoldMs: null }
  const amounts = { permits: EXCLUSIVE, capacity: EXCLUSIVE, floor: 0, block: 1 }
  return { resource: 'r', id, mode: 'queue', info: '', ...amounts, ...times, ...change }
}

function fenceOf(reply: ClaimReply | null): number {
  expect(reply?.status).toBe('granted')
  return (reply as Granted).fence
}

describe('a member that restarts', () => {
  const kinds: [Kept, string, string | undefined][] = [
    ['all', 'held', 'v'],
    ['states', 'gone', 'v'],
    ['counter', 'gone', undefined],
    ['nothing', 'gone', undefined],
  ]
  it.each(kinds)('and keeps %s has what it says', async (kept, claimStatus, value) => {
    const stage = new Stage()
    await stage.answer(stage.near.claim(claim('a')))
    await stage.answer(stage.near.write({ key: 'k', expect: null, value: 'v', retentionMs: null }))
    await stage.restart(kept)
    const beat = { resource: 'r', id: 'a', leaseMs: 1, presenceMs: 1 }
    const replies = await stage.answer(stage.near.pulse([beat]))
    expect(replies?.map(({ status }) => status)).toEqual([claimStatus])
    expect((await stage.answer(stage.near.read('k', false)))?.value).toBe(value)
  })

  it('and keeps its counter goes on with higher fences, though its wall clock is set back', async () => {
    const fences = async (kept: Kept): Promise<number[]> => {
      const stage = new Stage()
      const before = fenceOf(await stage.answer(stage.near.claim(claim('a'))))
      await stage.answer(stage.near.release('r', 'a'))
      stage.server.process.wallOffsetMs = -10_000
      await stage.restart(kept)
      return [before, fenceOf(await stage.answer(stage.near.claim(claim('b'))))]
    }
    const [before = 0, after = 0] = await fences('counter')
    expect(after).toBeGreaterThan(before)
    const [earlier = 0, later = 0] = await fences('nothing')
    expect(later).toBeLessThan(earlier)
  })

  it('and keeps its states keeps their time to live', async () => {
    const stage = new Stage()
    await stage.answer(stage.near.write({ key: 'k', expect: null, value: 'v', retentionMs: 5_000 }))
    await stage.restart('states')
    expect(await stage.answer(stage.near.read('k', false))).not.toBeNull()
    await stage.pass(4_000)
    expect(await stage.answer(stage.near.read('k', false))).toBeNull()
  })

  it('has a new run, unless it says that it loses nothing', async () => {
    const stage = new Stage()
    const before = await stage.answer(stage.near.origin?.run())
    await stage.restart('all')
    const after = await stage.answer(stage.near.origin?.run())
    expect([before, after]).toEqual(['m1 1', 'm1 2'])
    const durable = new Stage({ kind: 'durable' })
    expect(await durable.world.until(Promise.resolve(durable.near.origin?.run()))).toBeNull()
    expect(new Stage({ kind: 'steady' }).near.origin).toBeUndefined()
  })

  it('is down until it starts again', async () => {
    const stage = new Stage()
    stage.server.stop()
    await expect(stage.answer(stage.near.pulse([]))).resolves.toBeNull()
    stage.server.start('all')
    await expect(stage.answer(stage.near.pulse([]))).resolves.toEqual([])
  })
})

describe('the link to a member', () => {
  it('has another number after a restart, and tells of a gap when it works again', async () => {
    const stage = new Stage()
    await stage.answer(stage.near.pulse([]))
    expect(stage.link).toBe(1)
    stage.server.stop()
    await stage.pass(1_000)
    expect(stage.link).toBe(2)
    expect(stage.news).toEqual([])
    stage.server.start('nothing')
    await stage.pass(1_000)
    expect(stage.news).toEqual([{ type: 'gap' }])
  })

  it('has another number after each broken connection, also without a restart', async () => {
    const stage = new Stage()
    await stage.answer(stage.near.pulse([]))
    for (let count = 0; count < 3; count++) {
      stage.server.dropClients()
      await stage.pass(1_000)
    }
    expect(stage.link).toBe(4)
    expect(stage.news).toHaveLength(3)
  })

  it('keeps its number where nothing breaks', async () => {
    const stage = new Stage()
    for (let count = 0; count < 3; count++) await stage.answer(stage.near.pulse([]))
    expect(stage.link).toBe(1)
  })

  it('never lets a new run answer under the old number, even if no message tells of the restart', async () => {
    const stage = new Stage({ pushLossRate: 1 })
    await stage.answer(stage.near.pulse([]))
    await stage.restart('nothing')
    expect(stage.link).toBe(1)
    const asked = stage.near.claim(claim('a'))
    const seen = Promise.resolve(asked).then(
      () => stage.link,
      () => stage.link,
    )
    expect(await stage.world.until(seen)).toBe(2)
  })

  it('brings pushes again after it was broken', async () => {
    const stage = new Stage()
    await stage.answer(stage.far.claim(claim('a')))
    await stage.answer(stage.near.claim(claim('b')))
    stage.server.dropClients()
    await stage.pass(2_000)
    await stage.answer(stage.far.release('r', 'a'))
    await stage.pass(100)
    expect(stage.news).toMatchObject([{ type: 'gap' }, { type: 'granted', id: 'b' }])
  })

  it('lets calls under way fail, wait, or be sent again to the next run', async () => {
    const outcomes = new Set<string>()
    const stage = new Stage({ failAfterMs: 60_000 })
    for (let count = 0; count < 30; count++) {
      await stage.answer(stage.near.pulse([]))
      const { link } = stage
      const call = Promise.resolve(stage.near.claim(claim(`c${count}`, { mode: 'try' })))
      const settled = call.then(
        () => (stage.link === link ? 'answered by the old run' : 'answered by the new run'),
        () => 'failed',
      )
      await stage.restart('nothing')
      outcomes.add(await Promise.race([settled, stage.pass(1_000).then(() => 'waits')]))
    }
    expect([...outcomes].sort()).toEqual(['answered by the new run', 'failed', 'waits'])
  })

  it('does not change where a planted fault hides the restart', async () => {
    const stage = new Stage({ fault: { hidesRestarts: true } })
    const before = await stage.answer(stage.near.origin?.run())
    await stage.answer(stage.near.claim(claim('a')))
    await stage.restart('states')
    expect(fenceOf(await stage.answer(stage.far.claim(claim('b'))))).toBeGreaterThan(0)
    expect(await stage.answer(stage.near.origin?.run())).toBe(before)
    expect(stage.link).toBe(1)
  })
})
