import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'vitest'
import type { Store } from '../../../src/contract/store.js'
import { type Hold, Holdfast } from '../../../src/index.js'
import { type DashboardOptions, dashboard } from '../../../src/server/index.js'
import { onHost } from './hosts.js'

/** Clients on several hosts that contend for the same store, and what ends them. */
export class World {
  readonly store: Store
  readonly space: string
  readonly #clients = new Map<string, Holdfast>()
  readonly #ends: (() => Promise<unknown>)[] = []
  readonly #kept: unknown[] = []

  constructor(store: Store, space = 'shop') {
    this.store = store
    this.space = space
  }

  /** The client on that host. Strict order: every waiter has its own place in the line. */
  on(host: string): Holdfast {
    const client =
      this.#clients.get(host) ??
      new Holdfast(onHost(this.store, host), { space: this.space, order: 'strict', lease: '2m' })
    this.#clients.set(host, client)
    return client
  }

  /** Serves the dashboard; resolves with its address. */
  async serve(options: DashboardOptions = { allowLoopback: true, allowChanges: true }): Promise<string> {
    const view = dashboard(this.store, { space: this.space, basePath: '/locks', ...options })
    const server = createServer((request, response) => void view.node(request, response))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    this.#ends.push(async () => {
      await view.close()
      server.closeAllConnections()
      server.close()
    })
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/locks/`
  }

  /** A hold that nobody refers to would be garbage, and end. */
  keep<T>(hold: T): T {
    this.#kept.push(hold)
    return hold
  }

  async close(): Promise<void> {
    for (const end of this.#ends) await end()
    await Promise.all([...this.#clients.values()].map((client) => client.close({ drain: 0 })))
  }
}

/** What became of a request that waits. */
export interface Waiter {
  readonly outcome: Promise<'granted' | string>
}

/** Watches a request; nothing in a test has to catch its failure. */
function watched(asked: Promise<unknown>): Waiter {
  return {
    outcome: asked.then(
      () => 'granted',
      (error: { code?: string }) => error.code ?? String(error),
    ),
  }
}

export interface Contention {
  readonly orderHold: Hold
  /** In the order of the line. */
  readonly orderWaiters: Waiter[]
  readonly gpuWaiters: Waiter[]
}

/** Something of everything: locks, readers and writers, a semaphore, an election, a job, states. */
export async function contend(world: World): Promise<Contention> {
  const [api1, api2, api3, worker1] = ['api-1', 'api-2', 'api-3', 'worker-1'].map((host) =>
    world.on(host),
  ) as [Holdfast, Holdfast, Holdfast, Holdfast]
  const orderHold = world.keep(
    await api1.mutex('order:42').acquire({ label: 'checkout', owner: 'request-7f3a' }),
  )
  const orderWaiters: Waiter[] = []
  for (const [client, label] of [
    [api2, 'refund'],
    [api3, 'checkout'],
    [worker1, 'export'],
  ] as const)
    orderWaiters.push(await inLine(world, 'order:42', () => client.mutex('order:42').acquire({ label })))

  const catalogue = (client: Holdfast) => client.readWrite('catalogue')
  world.keep(await catalogue(api1).read.acquire({ label: 'list' }))
  world.keep(await catalogue(api2).read.acquire({ label: 'search' }))
  await inLine(world, 'catalogue', () => catalogue(worker1).write.acquire({ label: 'import' }))
  await inLine(world, 'catalogue', () => catalogue(api3).read.acquire({ label: 'list' }))

  world.keep(await worker1.semaphore('gpu', 4).acquire({ permits: 2, label: 'train' }))
  world.keep(await api1.semaphore('gpu', 4).acquire({ label: 'infer' }))
  const gpuWaiters = [
    await inLine(world, 'gpu', () => api2.semaphore('gpu', 4).acquire({ permits: 2, label: 'train' })),
  ]

  world.keep(await api1.election('scheduler').campaign({ id: 'node-1' }))
  await inLine(world, 'election:scheduler', () => api2.election('scheduler').campaign({ id: 'node-2' }))
  await api1.once('nightly', { atLeast: '10m', atMost: '1h' }, async () => {})
  await api1.latch('migrated', 3).countDown()
  watched(api1.barrier('phase', 3).meet())
  return { orderHold, orderWaiters, gpuWaiters }
}

/** Asks, and resolves when the store shows one waiter more. */
export async function inLine(world: World, name: string, ask: () => Promise<unknown>): Promise<Waiter> {
  const looker = world.on('api-1')
  const before = await lengthOf(looker, name)
  const waiter = watched(ask())
  await expect.poll(() => lengthOf(looker, name)).toBe(before + 1)
  return waiter
}

async function lengthOf(looker: Holdfast, name: string): Promise<number> {
  for await (const resource of looker.inspect({ prefix: name }))
    if (resource.name === name) return resource.waiters.length
  return 0
}
