import { expect, it } from 'vitest'
import { HoldfastError } from '../../src/base/errors.js'
import { EXCLUSIVE } from '../../src/contract/constants.js'
import type {
  ClaimReply,
  ClaimRequest,
  ClientContext,
  Connection,
  Push,
  Store,
} from '../../src/contract/store.js'
import { memory } from '../../src/stores/memory/index.js'
import { quorum } from '../../src/stores/quorum/index.js'
import { type VirtualProcess, VirtualWorld } from '../../src/testing/virtual-env.js'

/** A member as one client sees it, whose connection can break while a claim is under way. */
class BreakableMember {
  readonly store: Store
  /** The claims that came since the answers are held back. */
  readonly heldBack: { request: ClaimRequest; fail: () => void }[] = []
  isHoldingBack = false
  #link = 1
  #push: (news: Push) => void = () => {}

  constructor(inner: Store) {
    this.store = {
      name: inner.name,
      capabilities: inner.capabilities,
      connect: (client) => this.#connect(inner, client),
    }
  }

  breakOff(): void {
    this.#link++
  }

  push(news: Push): void {
    this.#push(news)
  }

  #connect(inner: Store, client: ClientContext): Connection {
    if (client.space === 'default') this.#push = (news) => client.push(news)
    const connection = inner.connect(client)
    const link = (): number => this.#link
    const claim = (request: ClaimRequest): Promise<ClaimReply> => {
      if (!this.isHoldingBack) return Promise.resolve(connection.claim(request))
      const { promise, fail } = failable()
      this.heldBack.push({ request, fail })
      return promise
    }
    const origin = {
      get link() {
        return link()
      },
      run: async () => null,
    }
    return new Proxy(connection, {
      get(target, key) {
        if (key === 'claim') return claim
        if (key === 'origin') return origin
        const value = Reflect.get(target, key)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
  }
}

function failable(): { promise: Promise<never>; fail: () => void } {
  let fail = (): void => {}
  const promise = new Promise<never>((_resolve, reject) => {
    fail = () => reject(new HoldfastError('STORE_UNAVAILABLE', 'The connection is lost', { retryable: true }))
  })
  return { promise, fail: () => fail() }
}

function claim(id: string): ClaimRequest {
  const times = { leaseMs: 20_000, presenceMs: 20_000, maxHoldMs: null }
  const amounts = { permits: EXCLUSIVE, capacity: EXCLUSIVE, floor: 0, block: 1 }
  return { resource: 'r', id, mode: 'queue', info: '', ...amounts, ...times }
}

function open(stores: Store[], process: VirtualProcess, news: Push[]): Connection {
  const client = { id: process.name, space: 'default', push: (each: Push) => news.push(each) }
  return quorum(stores, { env: process }).connect(client)
}

it('does not count a pushed grant of a member whose connection was lost since it was identified', async () => {
  const world = new VirtualWorld({ seed: 1 })
  const servers = [1, 2, 3].map((index) => memory({ env: world.env({ name: `m${index}` }) }))
  const members = servers.map((server) => new BreakableMember(server))
  const news: Push[] = []
  const [holder, waiter] = [world.env({ name: 'holder' }), world.env({ name: 'waiter' })]
  const first = open(
    servers.map((server) => new BreakableMember(server).store),
    holder,
    [],
  )
  const second = open(
    members.map(({ store }) => store),
    waiter,
    news,
  )
  expect(await world.until(Promise.resolve(first.claim(claim('a'))))).toMatchObject({ status: 'granted' })
  expect(await world.until(Promise.resolve(second.claim(claim('b'))))).toMatchObject({ status: 'waiting' })

  // The usher promotes the waiter. It asks the others, one of which restarts without its locks.
  for (const member of members) member.isHoldingBack = true
  for (const server of servers) {
    const operator = server.connect({ id: 'operator', space: 'default', push: () => {} })
    for await (const { claims } of operator.inspect({ prefix: '', resource: 'r' }))
      if (claims.length > 1) await operator.evict('r', null)
  }
  await world.run(world.timeMs + 10)
  const [restarted] = members.filter(({ heldBack }) => heldBack.length > 0)
  const [asked] = restarted?.heldBack ?? []
  expect(asked).toBeDefined()
  restarted?.breakOff()
  asked?.fail()
  await world.run(world.timeMs + 1)
  // The driver has sent the claim again, and the new run has promoted it.
  restarted?.push({
    type: 'granted',
    resource: 'r',
    id: asked?.request.id ?? '',
    fence: Date.UTC(2030, 0) * 1000 + 10_000_000,
  })
  await world.run(world.timeMs + 100)
  expect(news.filter(({ type }) => type === 'granted')).toEqual([])
})
