import { hostname } from 'node:os'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Store } from '../../src/contract/store.js'
import { Holdfast, type HoldfastOptions } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { now } from '../../src/testing/conformance/checks.js'
import { InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'

function client(store: Store, options: HoldfastOptions = {}): Holdfast {
  const locks = new Holdfast(store, options)
  onTestFinished(() => locks.close({ drain: 0 }))
  return locks
}

async function failure(promise: Promise<unknown>): Promise<Error & { code?: string }> {
  return promise.then(
    () => expect.unreachable('it was granted'),
    (error) => error,
  )
}

describe('the stack of an error', () => {
  const waits: Record<string, (locks: Holdfast) => Promise<unknown>> = {
    acquire: (locks) => locks.mutex('door').acquire({ wait: 5 }),
    'acquire without waiting': (locks) => locks.mutex('door').acquire({ wait: 0 }),
    run: (locks) => locks.mutex('door').run(() => {}, { wait: 5 }),
    'a neighbour': (locks) => {
      void failure(locks.mutex('door').acquire({ wait: 1000 }))
      return locks.mutex('door').acquire({ wait: 5 })
    },
    all: (locks) => locks.all(['door', 'window']).acquire({ wait: 5 }),
    'an aborted wait': (locks) => locks.mutex('door').acquire({ signal: AbortSignal.timeout(5) }),
    campaign: (locks) => locks.election('door').campaign({ wait: 5 }),
    latch: (locks) => locks.latch('door', 1).wait({ wait: 5 }),
    barrier: (locks) => locks.barrier('door', 2).meet({ wait: 5 }),
    'a nested run': (locks) =>
      locks.readWrite('wall').read.run(async () => {
        await locks.mutex('door').run(() => {}, { wait: 5 })
      }),
  }

  it.each(Object.keys(waits))('names the function that waited: %s', async (kind) => {
    const store = memory()
    const others = client(store)
    await others.mutex('door').acquire()
    await others.election('door').campaign()
    const locks = client(store)
    async function theCallersFunction(): Promise<void> {
      await waits[kind]?.(locks)
    }
    expect((await failure(theCallersFunction())).stack).toContain('theCallersFunction')
  })

  it('names the function of each caller, where many are told the same', async () => {
    const store = new InterceptedStore(memory())
    store.hang('claim')
    const locks = client(store, { storeTimeout: 30 })
    async function first(): Promise<void> {
      await locks.mutex('door').acquire()
    }
    async function second(): Promise<void> {
      await locks.mutex('door').acquire()
    }
    const [one, two] = await Promise.all([failure(first()), failure(second())])
    expect([one.code, two.code]).toEqual(['STORE_UNAVAILABLE', 'STORE_UNAVAILABLE'])
    expect(one.stack).toMatch(/\bat (?:async )?first \(/)
    expect(two.stack).toMatch(/\bat (?:async )?second \(/)
  })
})

describe('the message of a wait that is over', () => {
  const us = `${hostname().replaceAll('.', '\\.')}, pid ${process.pid}`

  it('names who holds, by label', async () => {
    const store = memory()
    await client(store).mutex('door').acquire({ label: 'nightly report' })
    const { message } = await failure(client(store).mutex('door').acquire({ wait: 1 }))
    expect(message).toMatch(
      new RegExp(
        `^'door' could not be acquired within 1 ms: held by ${us}, 'nightly report' for \\d+ ms; wait longer, or see who holds it with locks.inspect\\(\\) or holdfast ls$`,
      ),
    )
  })

  it('names one of several holders', async () => {
    const store = memory()
    for (const _ of [1, 2, 3]) await client(store).semaphore('gpu', 3).acquire()
    const { message } = await failure(client(store).semaphore('gpu', 3).acquire({ wait: 0 }))
    expect(message).toMatch(new RegExp(`^'gpu' is not free: held by ${us} for \\d+ ms and 2 more;`))
  })

  it('names which of several locks is held', async () => {
    const store = memory()
    await client(store).mutex('window').acquire()
    const { message } = await failure(client(store).all(['door', 'window']).acquire({ wait: 1 }))
    expect(message).toMatch(
      new RegExp(`^Could not acquire all of 'door', 'window' within 1 ms: 'window' is held by ${us} for`),
    )
  })

  it('does without where the look fails, and looks once for many', async () => {
    const inner = memory()
    await client(inner).mutex('door').acquire()
    const store = new InterceptedStore(inner)
    const locks = client(store)
    // As a store on a network, which answers after all of them have asked.
    store.around = async (call, go) => {
      if (call.method === 'inspect') await new Promise((resolve) => setTimeout(resolve, 50))
      return go()
    }
    const waits = Array.from({ length: 50 }, () => failure(locks.mutex('door').acquire({ wait: 20 })))
    for (const { message } of await Promise.all(waits)) expect(message).toContain(`pid ${process.pid}`)
    expect(store.count('inspect')).toBeLessThan(10)
    store.cut('inspect')
    // Another client, which does not know what this one has seen.
    const { message } = await failure(client(store).mutex('door').acquire({ wait: 1 }))
    expect(message).toMatch(/^'door' could not be acquired within 1 ms; wait longer/)
  })

  it('comes from one look for all whose waits end soon after each other', async () => {
    const store = new InterceptedStore(memory())
    const locks = client(store)
    await locks.mutex('door').acquire()
    const begunAt = now()
    for (let caller = 0; caller < 20; caller++) {
      const { message } = await failure(locks.mutex('door').acquire({ wait: 1 }))
      expect(message).toContain(`pid ${process.pid}`)
    }
    // Each look is good for a quarter of a second.
    expect(store.count('inspect')).toBeLessThanOrEqual(1 + (now() - begunAt) / 250)
  })
})
