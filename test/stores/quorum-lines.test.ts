import { beforeEach, expect, it } from 'vitest'
import { EXCLUSIVE } from '../../src/contract/constants.js'
import type { ClaimRequest, ClaimView, Connection, Push, Store } from '../../src/contract/store.js'
import { memory } from '../../src/stores/memory/index.js'
import { quorum } from '../../src/stores/quorum/index.js'
import { InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

const LONGEST_LEASE_MS = 3000
const MEMBER_TIMEOUT_MS = 600
/** Far below the time after which claims that block each other give up. */
const SOON_MS = 50

let world: VirtualWorld
let servers: readonly Store[]

beforeEach(() => {
  world = new VirtualWorld({ seed: 1 })
  const clocks = [0, 0, 5000].map((wallOffsetMs, index) => world.env({ name: `m${index + 1}`, wallOffsetMs }))
  servers = clocks.map((env) => memory({ env }))
})

/** One client of the set, with ways of its own to the members. */
class Client {
  readonly ways = servers.map((server) => new InterceptedStore(server))
  readonly news: Push[] = []
  readonly connection: Connection

  constructor(readonly name: string) {
    const env = world.env({ name })
    const options = { longestLease: LONGEST_LEASE_MS, memberTimeout: MEMBER_TIMEOUT_MS, env }
    const push = (news: Push): void => void this.news.push(news)
    this.connection = quorum(this.ways, options).connect({ id: name, space: 'default', push })
  }

  claim(): Promise<string> {
    return world.until(Promise.resolve(this.connection.claim(this.request())).then(({ status }) => status))
  }

  request(): ClaimRequest {
    const times = { leaseMs: 2000, presenceMs: 2000, maxHoldMs: null }
    const amounts = { permits: EXCLUSIVE, capacity: EXCLUSIVE, floor: 0, block: 1 }
    return { resource: 'r', id: this.name, mode: 'queue', info: '', ...amounts, ...times }
  }

  release(): Promise<boolean> {
    return world.until(Promise.resolve(this.connection.release('r', this.name)))
  }

  /** Renews what it has, for as long as that. */
  async stay(ms: number): Promise<void> {
    const beat = { resource: 'r', id: this.name, leaseMs: 2000, presenceMs: 2000 }
    for (const end = world.timeMs + ms; world.timeMs < end; ) {
      await world.until(this.connection.pulse([beat]))
      await world.run(Math.min(end, world.timeMs + 200))
    }
  }

  /** The line as it is shown to this client. */
  shown(): Promise<readonly ClaimView[]> {
    return world.until(
      (async () => {
        for await (const { claims } of this.connection.inspect({ prefix: '' })) return claims
        return []
      })(),
    )
  }

  get toldOf(): string[] {
    return this.news.map(({ type }) => type)
  }
}

/** The claims on each member. */
async function lines(): Promise<(readonly ClaimView[])[]> {
  return Promise.all(
    servers.map(async (server) => {
      const operator = server.connect({ id: 'operator', space: 'default', push: () => {} })
      for await (const { claims } of operator.inspect({ prefix: '', resource: 'r' })) return claims
      return []
    }),
  )
}

/** The number of the member in whose line that client waits. */
async function usherOf(client: Client): Promise<number> {
  return (await lines()).findIndex((claims) =>
    claims.some(({ id, fence }) => fence === null && id.startsWith(`${client.name}.`)),
  )
}

it('lets a claim with a later usher go over to the line of the earlier one', async () => {
  const holder = new Client('holder')
  expect(await holder.claim()).toBe('granted')
  const first = new Client('first')
  expect(await first.claim()).toBe('waiting')
  const usher = await usherOf(first)
  // This one does not reach that member, and waits in the line of another.
  const second = new Client('second')
  second.ways[usher]?.cut()
  expect(await second.claim()).toBe('waiting')
  const laterUsher = await usherOf(second)
  expect(laterUsher).not.toBe(usher)
  second.ways[usher]?.heal()
  await Promise.all([holder, first, second].map((client) => client.stay(1500)))

  // Each has the vote of its usher, and needs that of the other's: the third member is down.
  const third = [0, 1, 2].find((index) => index !== usher && index !== laterUsher) ?? 0
  for (const { ways } of [first, second]) ways[third]?.cut()
  await holder.release()
  await world.run(world.timeMs + SOON_MS)
  expect(first.toldOf).toEqual(['granted'])
  expect(second.toldOf).toEqual([])
  expect(await usherOf(second)).toBe(usher)
  await first.release()
  await world.run(world.timeMs + SOON_MS)
  expect(second.toldOf).toEqual(['granted'])
})

it('leaves a hold to its holder when the client that adopts it gives up in time', async () => {
  const holder = new Client('holder')
  expect(await holder.claim()).toBe('granted')
  const fence = (await holder.shown())[0]?.fence ?? 0
  const heir = new Client('heir')
  const looks: (() => void)[] = []
  for (const way of heir.ways)
    way.around = ({ method }, go) =>
      method === 'inspect' ? new Promise((resolve) => looks.push(() => resolve(go()))) : go()
  const adopts = { id: 'holder', fence }
  const adopting = heir.connection.claim({ ...heir.request(), mode: 'adopt', adopts })
  await world.run(world.timeMs + SOON_MS)
  expect(looks).toHaveLength(3)
  expect(await heir.release()).toBe(false)
  for (const look of looks) look()
  await world.run(world.timeMs + SOON_MS)
  expect(await adopting).toMatchObject({ status: 'refused' })
  expect(holder.toldOf).toEqual([])
  expect((await holder.shown()).map(({ id }) => id)).toEqual(['holder'])
})

it('shows a claim that waits in the line of a later usher', async () => {
  const holder = new Client('holder')
  expect(await holder.claim()).toBe('granted')
  const [first, second] = [new Client('first'), new Client('second')]
  expect(await first.claim()).toBe('waiting')
  second.ways[await usherOf(first)]?.cut()
  expect(await second.claim()).toBe('waiting')
  expect((await holder.shown()).map(({ id }) => id)).toEqual(['holder', 'first', 'second'])
})

it('takes back a claim that the network delivers long after its client gave it up', async () => {
  const client = new Client('client')
  expect(await client.claim()).toBe('granted')
  await client.release()
  const [late] = client.ways as [InterceptedStore]
  const delivered: (() => Promise<unknown>)[] = []
  late.around = (_call, go) => {
    delivered.push(go)
    return new Promise<never>(() => {})
  }
  expect(await client.claim()).toBe('granted')
  await client.release()
  await world.run(world.timeMs + MEMBER_TIMEOUT_MS + 2 * LONGEST_LEASE_MS)
  // Its answer is lost as well, so only the client knows that nobody wants it.
  await delivered[0]?.()
  expect((await lines()).map((claims) => claims.length)).toEqual([1, 0, 0])
  late.heal()
  await world.run(world.timeMs + 1500)
  expect((await lines()).map((claims) => claims.length)).toEqual([0, 0, 0])
})

it('releases a claim once, also where it is answered after its release was sent', async () => {
  const client = new Client('client')
  const [, , slow] = client.ways as [InterceptedStore, InterceptedStore, InterceptedStore]
  slow.around = async (_call, go) => {
    const reply = await go()
    return later(50, async () => reply)
  }
  expect(await client.claim()).toBe('granted')
  await client.release()
  await world.run(world.timeMs + 500)
  expect(client.ways.map((way) => way.count('release'))).toEqual([1, 1, 1])
})

it('releases a claim again that its release has overtaken', async () => {
  const client = new Client('client')
  await world.until(client.connection.pulse([]))
  const [, , slow] = client.ways as [InterceptedStore, InterceptedStore, InterceptedStore]
  slow.around = async (call, go) => {
    if (call.method === 'claim') return later(50, go)
    const reply = await go()
    return later(100, async () => reply)
  }
  expect(await client.claim()).toBe('granted')
  await client.release()
  await world.run(world.timeMs + 80)
  expect((await lines()).map((claims) => claims.length)).toEqual([0, 0, 1])
  await world.run(world.timeMs + 500)
  expect((await lines()).map((claims) => claims.length)).toEqual([0, 0, 0])
})

it('shows the fence of the hold, also where a member has granted it later with another one', async () => {
  const holder = new Client('holder')
  await world.until(holder.connection.pulse([]))
  const [slow, ahead] = [holder.ways[1], holder.ways[2]] as [InterceptedStore, InterceptedStore]
  // The clock of the last member is ahead, and it grants the claim when the others have agreed.
  ahead.around = (call, go) => (call.method === 'claim' ? later(100, go) : go())
  expect(await holder.claim()).toBe('granted')
  await world.run(world.timeMs + 200)
  const fences = (await lines()).map(([claim]) => claim?.fence)
  expect(fences[0]).toBe(fences[1])
  expect(fences[2]).toBeGreaterThan(fences[0] ?? 0)
  slow.around = (_call, go) => later(200, go)
  expect((await holder.shown()).map(({ fence }) => fence)).toEqual([fences[0]])
})

it.each([
  { when: 'when the third has granted it, too', thirdMs: 0, secondMs: 3, grants: 3 },
  { when: 'before the third has granted it', thirdMs: 10, secondMs: 30, grants: 2 },
])('shows no fence that two members have while that of the third is to be the one: $when', async (row) => {
  const [holder, observer] = [new Client('holder'), new Client('observer')]
  for (const { connection } of [holder, observer]) await world.until(connection.pulse([]))
  const [first, second, third] = holder.ways as [InterceptedStore, InterceptedStore, InterceptedStore]
  // The answer of the third, whose clock is ahead, comes before that of the second.
  for (const way of [first, second])
    way.around = async (call, go) => {
      if (call.method === 'pulse') return later(60, go)
      const reply = await go()
      return later(way === second ? row.secondMs : 0, async () => reply)
    }
  third.around = (call, go) => (call.method === 'claim' ? later(row.thirdMs, go) : go())
  const granted = holder.claim()
  const fences = async (): Promise<(number | null | undefined)[]> =>
    (await lines()).map(([claim]) => claim?.fence)
  const grants = async (): Promise<number> => (await fences()).filter(Boolean).length
  while ((await grants()) < row.grants) await world.run(world.timeMs + 1)
  expect(await grants()).toBe(row.grants)
  const [one, other] = await fences()
  expect(one).toBe(other)
  const seen = (await observer.shown()).map(({ fence }) => fence)
  expect(await granted).toBe('granted')
  expect(seen).toEqual([Math.max(...(await fences()).map(Number))])
  expect(seen).not.toEqual([one])
})

it('shows a hold when a majority agrees on its fence, and not before', async () => {
  const [holder, observer] = [new Client('holder'), new Client('observer')]
  for (const { connection } of [holder, observer]) await world.until(connection.pulse([]))
  // Two members vote, with different fences; one is slow to take that of the other.
  for (const { ways } of [holder, observer]) ways[0]?.cut()
  const [, slow] = holder.ways as [InterceptedStore, InterceptedStore]
  slow.around = (call, go) => (call.method === 'pulse' ? later(60, go) : go())
  const granted = holder.claim()
  const isGrantedTwice = async (): Promise<boolean> =>
    (await lines()).filter(([claim]) => claim?.fence).length === 2
  while (!(await isGrantedTwice())) await world.run(world.timeMs + 1)
  const seen = (await observer.shown()).map(({ fence }) => fence)
  expect(await granted).toBe('granted')
  const [, claims] = await lines()
  expect(seen).toEqual([claims?.[0]?.fence])
})

it('shows a line in time, however long a member was silent before', async () => {
  const [holder, observer] = [new Client('holder'), new Client('observer')]
  for (const { connection } of [holder, observer]) await world.until(connection.pulse([]))
  const [silent] = observer.ways as [InterceptedStore]
  silent.around = (_call, go) => later(5000, go)
  await observer.shown()
  silent.heal()
  await world.run(world.timeMs + 6000)
  // One member does not know the new hold: a view looks whether they are about to agree on it.
  holder.ways[2]?.cut()
  expect(await holder.claim()).toBe('granted')
  const askedAt = world.timeMs
  expect((await observer.shown()).map(({ id }) => id)).toEqual(['holder'])
  expect(world.timeMs - askedAt).toBeLessThan(MEMBER_TIMEOUT_MS + 100)
})

it('reserves no fence twice, also where two pulses ask for blocks of different lengths at once', async () => {
  const holder = new Client('holder')
  expect(await holder.claim()).toBe('granted')
  const beat = { resource: 'r', id: 'holder', leaseMs: 2000, presenceMs: 2000 }
  const blocks = [3, 5]
  const pulses = blocks.map((block) => holder.connection.pulse([{ ...beat, block }]))
  const replies = (await world.until(Promise.all(pulses))).flat()
  await holder.release()
  expect(await new Client('next').claim()).toBe('granted')
  const next = Math.max(...(await lines()).map(([claim]) => claim?.fence ?? 0))
  const reserved = replies.flatMap((reply, index) => {
    const first = (reply.status === 'held' && reply.block) || Infinity
    return Array.from({ length: blocks[index] ?? 0 }, (_, each) => first + each)
  })
  expect(new Set(reserved).size).toBe(8)
  expect(next).toBeGreaterThan(Math.max(...reserved))
})

async function later<T>(ms: number, go: () => Promise<T>): Promise<T> {
  await new Promise<void>((resolve) => world.after(ms, resolve))
  return go()
}
