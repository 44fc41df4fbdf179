import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { deferred } from '../../src/base/deferred.js'
import { type Env, systemEnv } from '../../src/base/env.js'
import { HoldfastError } from '../../src/base/errors.js'
import type { Beat, Store } from '../../src/contract/store.js'
import { Holdfast, type HoldfastOptions } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { type QuorumOptions, quorum } from '../../src/stores/quorum/index.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { zookeeper } from '../../src/stores/zookeeper/index.js'
import { eventually, pass } from '../../src/testing/conformance/checks.js'
import { type Call, InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

const opened: Holdfast[] = []
const folders: string[] = []

afterEach(async () => {
  await Promise.all(opened.splice(0).map((locks) => locks.close({ drain: 0 })))
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

function client(members: readonly Store[], options: QuorumOptions & HoldfastOptions = {}): Holdfast {
  const { longestLease, memberTimeout, ...rest } = options
  const locks = new Holdfast(quorum(members, { longestLease, memberTimeout }), rest)
  opened.push(locks)
  return locks
}

/** Memory stores that a test can disturb, already founded as a set. */
async function set(count = 3, stores: readonly Store[] = []): Promise<InterceptedStore[]> {
  const inner = Array.from({ length: count }, (_, index) => stores[index] ?? memory())
  await client(inner).ping()
  return inner.map((store) => new InterceptedStore(store))
}

async function failureOf(work: () => unknown): Promise<HoldfastError> {
  try {
    await work()
  } catch (error) {
    expect(error).toBeInstanceOf(HoldfastError)
    return error as HoldfastError
  }
  throw new Error('it did not fail')
}

/** How often the members were called by that method. */
/** It asks a member to take a fence that another one gave. */
function isRaise({ method, about }: Call): boolean {
  return method === 'pulse' && (about as Beat[]).some(({ fences }) => fences !== undefined)
}

function counts(members: readonly InterceptedStore[], method: 'claim' | 'pulse' | 'release'): number[] {
  return members.map((member) => member.count(method))
}

describe('the members of a quorum', () => {
  it.each([0, 1, 2, 4, 6, 8])('are not %i', async (count) => {
    const error = await failureOf(() => quorum(Array.from({ length: count }, () => memory())))
    expect(error.code).toBe('INVALID_ARGUMENT')
    expect(error.message).toContain('3, 5 or 7 members')
  })

  it('are stores, each a different one, and no ZooKeeper', async () => {
    const one = memory()
    const lists = [
      [one, memory(), one],
      [one, memory(), 'redis://a'],
      [one, memory(), zookeeper('127.0.0.1:1')],
    ]
    for (const list of lists)
      expect((await failureOf(() => quorum(list as Store[]))).code).toBe('INVALID_ARGUMENT')
    expect((await failureOf(() => quorum('redis://a' as never))).code).toBe('INVALID_ARGUMENT')
  })

  it('are found out to be the same server', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-quorum-'))
    folders.push(folder)
    const files = ['a.db', 'b.db', 'a.db'].map((name) => sqlite(join(folder, name)))
    const error = await failureOf(() => client(files).mutex('door').acquire())
    expect(error.code).toBe('INVALID_ARGUMENT')
    expect(error.message).toMatch(
      /member \d \(sqlite\) and member \d \(sqlite\) of the quorum are the same server/,
    )
  })

  it('are all needed once, to found the set', async () => {
    const members = [memory(), memory(), memory()].map((store) => new InterceptedStore(store))
    members[2]?.cut()
    const locks = client(members, { storeTimeout: '300ms' })
    const error = await failureOf(() => locks.mutex('door').acquire())
    expect(error.code).toBe('STORE_UNAVAILABLE')
    expect(error.message).toContain('the set is new')
    members[2]?.heal()
    await locks.mutex('door').run(() => {})
  })

  it('take part again when the longest lease is over, if one has lost its data', async () => {
    const [a, b] = (await set()) as [InterceptedStore, InterceptedStore]
    const emptied = new InterceptedStore(memory())
    const longestLease = '2s'
    const since = systemEnv.now()
    const locks = client([a, b, emptied], { longestLease })
    await locks.mutex('door').run(() => {}, { lease: '1s' })
    expect(emptied.count('claim')).toBe(0)
    const finding = (await locks.check()).find(({ about }) => about === 'members')
    expect(finding?.level).toBe('risk')
    expect(finding?.text).toContain('2 of 3 members vote')
    await eventually('its vote', async () => {
      await locks.mutex('door').run(() => {}, { lease: '1s' })
      return emptied.count('claim') > 0
    })
    expect(systemEnv.now() - since).toBeGreaterThanOrEqual(2000)
  })

  it('are all asked by a check, however much slower one of them is', async () => {
    const members = await set()
    const slow = members[1] as InterceptedStore
    slow.around = async (_call, go) => {
      await new Promise<void>((resolve) => systemEnv.timer(100, resolve, { keepAlive: true }))
      return go()
    }
    const locks = client(members)
    expect((await locks.check())[0]?.text).toContain('3 of 3 members vote')
  })

  it('are all waited for by the first claim, so that it is in the line of all other clients', async () => {
    const members = await set()
    const slow = members[1] as InterceptedStore
    slow.around = async (_call, go) => {
      await new Promise<void>((resolve) => systemEnv.timer(300, resolve, { keepAlive: true }))
      return go()
    }
    await client(members, { memberTimeout: '30s' })
      .mutex('door')
      .run(() => {})
    expect(counts(members, 'claim')).toEqual([1, 1, 1])
  })

  it('do not take part in a new set with those that vote already', async () => {
    const [a, b] = await set()
    const locks = client([a as Store, b as Store, memory()], { longestLease: '1m' })
    await locks.mutex('door').run(() => {})
    expect((await locks.check())[0]?.text).toContain('2 of 3 members vote')
  })
})

it('a quorum tells of waiters as soon as a majority of its members does', () => {
  const isTelling = [false, false, false]
  const members = isTelling.map((_, index): Store => {
    const store = memory()
    const capabilities = {
      ...store.capabilities,
      get tellsWanted() {
        return isTelling[index]
      },
    }
    return { name: store.name, capabilities, connect: (client) => store.connect(client) }
  })
  const { capabilities } = quorum(members)
  expect(capabilities.tellsWanted).toBe(false)
  isTelling[2] = true
  expect(capabilities.tellsWanted).toBe(false)
  isTelling[0] = true
  expect(capabilities.tellsWanted).toBe(true)
})

describe('a grant of a quorum', () => {
  it('takes one round trip where the members agree', async () => {
    const members = await set()
    const locks = client(members)
    await locks.mutex('door').run(() => {})
    await locks.mutex('door').run(() => {})
    expect(counts(members, 'claim')).toEqual([2, 2, 2])
    expect(counts(members, 'pulse')).toEqual([0, 0, 0])
    expect(counts(members, 'release')).toEqual([2, 2, 2])
  })

  it('takes one round trip also where members are far away', async () => {
    const world = new VirtualWorld({ seed: 1 })
    const network = world.env({ name: 'network' })
    const members = [20, 50, 80].map((ms) => {
      const member = new InterceptedStore(memory({ env: world.env({ name: `${ms} ms away` }) }))
      const travel = (): Promise<void> =>
        new Promise((resolve) => void network.timer(ms, resolve, { keepAlive: true }))
      member.around = async (_call, go) => {
        await travel()
        const reply = await go()
        await travel()
        return reply
      }
      return member
    })
    const env = world.env({ name: 'client' })
    const locks = new Holdfast(quorum(members, { env }), { env })
    await world.until(locks.ping())
    const raises = (): number => members.flatMap(({ calls }) => calls.filter(isRaise)).length
    await world.until(locks.mutex('door').run(() => {}))
    const before = raises()
    for (let round = 0; round < 20; round++) await world.until(locks.mutex('door').run(() => {}))
    expect(raises()).toBe(before)
    await world.until(locks.close({ drain: 0 }))
  })

  it('is agreed on by a second round where their clocks are apart', async () => {
    const ahead = (ms: number): Env => ({ ...systemEnv, wallMs: () => systemEnv.wallMs() + ms })
    const members = await set(
      3,
      [5000, 3000, 1000].map((ms) => memory({ env: ahead(ms) })),
    )
    const locks = client(members)
    const fences: number[] = []
    for (let round = 0; round < 5; round++)
      await locks.mutex('door').run(async (hold) => {
        fences.push(hold.fence)
        const seen = []
        for await (const { holders } of locks.inspect()) seen.push(...holders.map(({ fence }) => fence))
        expect(seen).toEqual([hold.fence])
      })
    expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b))
    expect(counts(members, 'pulse').some((count) => count > 0)).toBe(true)
  })

  it('comes to a try also where the first answers came when their leases were over', async () => {
    const members = await set()
    const locks = client(members)
    await locks.mutex('door').run(() => {})
    for (const member of members)
      member.around = async (call, go) => {
        const isFirst = call.method === 'claim' && member.count('claim') === 2
        const reply = await go()
        if (isFirst) await pass(400)
        return reply
      }
    const hold = await locks.mutex('door').tryAcquire({ lease: 300 })
    expect(hold?.isValid).toBe(true)
    expect(counts(members, 'claim')).toEqual([3, 3, 3])
  })

  it('works with members that answer within the call', async () => {
    const members = [memory(), memory(), memory()]
    const [first, second] = [client(members), client(members)]
    for (const order of ['cohort', 'strict'] as const) {
      const fences: number[] = []
      const work = (locks: Holdfast): Promise<void> =>
        locks.mutex('door', { order }).run((hold) => void fences.push(hold.fence))
      await Promise.all([first, second].flatMap((locks) => Array.from({ length: 50 }, () => work(locks))))
      expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b))
      expect(fences).toHaveLength(100)
    }
  })

  // In virtual time: on a busy machine, a client that stands still loses its tries.
  it.each([1, 2, 3])('goes to just one of several tries that meet, seed %i', async (seed) => {
    const world = new VirtualWorld({ seed })
    const network = world.env({ name: 'network' })
    const members = [1, 2, 3].map(
      (index) => new InterceptedStore(memory({ env: world.env({ name: `member ${index}` }) })),
    )
    for (const member of members)
      member.around = async (call, go) => {
        // In another order on each member, and slow to give back.
        const delayMs = call.method === 'release' ? 25 : 5 * network.random()
        await new Promise<void>((resolve) => network.timer(delayMs, resolve, { keepAlive: true }))
        return go()
      }
    const clients = [1, 2, 3, 4].map((index) => {
      const env = world.env({ name: `client ${index}` })
      return new Holdfast(quorum(members, { env }), { env })
    })
    for (const locks of clients) await world.until(locks.ping())
    for (let round = 0; round < 10; round++) {
      const tries = clients.map((locks) => locks.mutex(`door ${round}`).tryAcquire())
      const holds = await world.until(Promise.all(tries))
      expect(holds.filter((hold) => hold !== null)).toHaveLength(1)
      await world.until(Promise.all(holds.map((hold) => hold?.release())))
    }
    await world.until(Promise.all(clients.map((locks) => locks.close({ drain: 0 }))))
  })

  it('is asked for under ids that are never used again', async () => {
    const members = await set()
    const locks = client(members, { memberTimeout: '100ms', storeTimeout: '1s' })
    await locks.ping()
    members[0]?.hang('claim')
    members[1]?.hang('claim')
    await failureOf(() => locks.mutex('door').acquire())
    for (const { calls } of members) {
      const ids = calls.flatMap(({ method, about }) =>
        method === 'claim' ? [(about as { id: string }).id] : [],
      )
      expect(ids.length).toBeGreaterThan(0)
      expect(new Set(ids).size).toBe(ids.length)
    }
  })

  it('is refused by a lease that is longer than the longest', async () => {
    const locks = client(await set(), { longestLease: '10s' })
    expect((await failureOf(() => locks.mutex('door').acquire({ lease: '11s' }))).code).toBe(
      'INVALID_ARGUMENT',
    )
    const hold = await locks.mutex('door').acquire({ lease: '10s' })
    expect((await failureOf(() => hold.extend('11s'))).code).toBe('INVALID_ARGUMENT')
    expect(hold.isValid).toBe(true)
  })

  it('is extended, also where a member joins it in the same moment', async () => {
    const members = await set()
    const [late, , silent] = members as [InterceptedStore, InterceptedStore, InterceptedStore]
    const locks = client(members, { lease: '10s', memberTimeout: '2s' })
    const hold = await locks.mutex('door').acquire()
    silent.hang('pulse')
    const [sent, delivered] = [deferred<void>(), deferred<void>()]
    late.around = async (call, go) => {
      if (call.method !== 'pulse') return go()
      sent.resolve()
      await delivered.promise
      return go()
    }
    const extended = hold.extend('20s')
    await sent.promise
    // The member loses the hold before it hears of that. It joins again by the next extension, with
    // the usual lease, and one of the other two is silent.
    const operator = late.connect({ id: 'operator', space: 'default', push: () => {} })
    expect(await operator.evict('door', null)).toHaveLength(1)
    const again = hold.extend('20s')
    await eventually('its new vote', () => late.answered('claim') === 2)
    delivered.resolve()
    await Promise.all([extended, again])
  })

  it('is none of permits that are counted', async () => {
    const locks = client(await set())
    for (const make of [() => locks.semaphore('gpu', 2), () => locks.barrier('phase', 2)]) {
      const error = await failureOf(make)
      expect(error.code).toBe('UNSUPPORTED')
      expect(error.message).toContain('use one of the members')
    }
  })
})

describe('a minority that fails', () => {
  it('is waited for once, and then left alone', async () => {
    const members = await set()
    const locks = client(members, { memberTimeout: '200ms' })
    await locks.mutex('door').run(() => {})
    members[1]?.hang()
    // Whichever member is asked first: some resources have the silent one for their line.
    for (let round = 0; round < 10; round++) await locks.mutex(`door ${round}`).run(() => {})
    await eventually('the time-out', async () => (await locks.check())[0]?.level === 'risk')
    const asked = members[1]?.count('claim')
    for (let round = 0; round < 20; round++) await locks.mutex(`door ${round}`).run(() => {})
    expect(members[1]?.count('claim')).toBe(asked)
    members[1]?.heal()
    const claims = members[1]?.count('claim') ?? 0
    await eventually('its votes', async () => {
      await locks.mutex('door').run(() => {})
      return (members[1]?.count('claim') ?? 0) > claims
    })
  })

  it('costs a hold nothing, and has it again with the next renewal', async () => {
    const members = await set()
    const [a, b, c] = members as [InterceptedStore, InterceptedStore, InterceptedStore]
    const locks = client(members, { memberTimeout: '200ms' })
    c.cut()
    const hold = await locks.mutex('door').acquire({ lease: '3s' })
    c.heal()
    await eventually('the claim on the third member', () => c.count('claim') > 0)
    await eventually('its renewal there', () => c.answered('pulse') > 0)
    // Now another one: the hold has a majority again.
    a.cut()
    const others = client([b, c, memory()].slice(0, 2).concat(a), { memberTimeout: '200ms' })
    expect(await others.mutex('door').tryAcquire()).toBe(null)
    expect(hold.isValid).toBe(true)
    expect(await hold.release()).toBe(true)
  })

  it('that other holds do not have costs them nothing', async () => {
    const members = await set()
    const [, b, c] = members as [InterceptedStore, InterceptedStore, InterceptedStore]
    const locks = client(members, { memberTimeout: '200ms' })
    const others = await Promise.all(
      ['x', 'y', 'z'].map((name) => locks.mutex(name).acquire({ lease: '3s' })),
    )
    c.cut()
    const hold = await locks.mutex('door').acquire({ lease: '3s' })
    // From now on the first and the third member are up, and the last hold is not on the third.
    c.heal()
    b.cut()
    await eventually('renewals', () => hold.isValid && others.every(({ remainingMs }) => remainingMs > 2500))
    await eventually('the claim on the third member', () =>
      c.calls.some(({ about }) => isClaimOf(about, 'door')),
    )
    await eventually('its renewal', () => hold.remainingMs > 2500)
    for (const each of [hold, ...others]) expect(await each.release()).toBe(true)
  })

  it('moves the waiters to the line of another member', async () => {
    const members = await set()
    const [first, second] = [
      client(members, { memberTimeout: '200ms' }),
      client(members, { memberTimeout: '200ms' }),
    ]
    const hold = await first.mutex('door').acquire({ lease: '3s' })
    const waiting = second.mutex('door').acquire({ lease: '3s' })
    const usher = await usherOf(members, first)
    usher.hang()
    await hold.release()
    const next = await waiting
    expect(next.fence).toBeGreaterThan(hold.fence)
    expect(await next.release()).toBe(true)
  })

  it('is told of a release when it is back', async () => {
    const store = memory()
    const members = await set(3, [store])
    const locks = client(members, { memberTimeout: '200ms' })
    const hold = await locks.mutex('door').acquire()
    members[0]?.cut()
    expect(await hold.release()).toBe(true)
    members[0]?.heal()
    const alone = new Holdfast(store)
    opened.push(alone)
    await eventually('the release', async () => {
      for await (const _line of alone.inspect()) return false
      return true
    })
  })
})

describe('the line of a quorum', () => {
  it('is on another member for other names, also for similar ones', async () => {
    const members = await set()
    const locks = client(members)
    for (let name = 0; name < 60; name++) await locks.mutex(`user:${name}`).run(() => {})
    const queued = members.map(
      ({ calls }) => calls.filter(({ method, about }) => isQueued(method, about)).length,
    )
    expect(queued.reduce((sum, count) => sum + count)).toBe(60)
    for (const count of queued) expect(count).toBeGreaterThan(5)
  })

  it('goes on when the last release is answered late, and its client closes', async () => {
    const members = await set()
    const [first, second] = [client(members), client(members)]
    const hold = await first.mutex('door').acquire()
    const waiting = second.mutex('door').acquire()
    const usher = await usherOf(members, second)
    const isToldLate = deferred<void>()
    const { around } = usher
    usher.around = async (call, go) => {
      if (call.method === 'release') await isToldLate.promise
      return around(call, go)
    }
    // The other two are a majority.
    expect(await hold.release()).toBe(true)
    let isClosed = false
    const closing = first.close().then(() => {
      isClosed = true
    })
    await second.ping()
    expect(isClosed).toBe(false)
    isToldLate.resolve()
    await closing
    expect(await (await waiting).release()).toBe(true)
  })
})

describe('a majority that fails', () => {
  it('is told with the failure of each member', async () => {
    const members = await set()
    members[0]?.cut()
    members[2]?.hang()
    const locks = client(members, { memberTimeout: '100ms', storeTimeout: '500ms' })
    const error = await failureOf(() => locks.mutex('door').acquire())
    expect(error.code).toBe('STORE_UNAVAILABLE')
    expect(error.message).toContain('member 1 (memory): ')
    expect(error.message).toContain('member 3 (memory): no answer within 100 ms')
    expect(error.message).not.toContain('member 2')
  })

  it('takes the hold with it at once when it has revoked it', async () => {
    const stores = [memory(), memory(), memory()]
    const members = await set(3, stores)
    const hold = await client(members).mutex('door').acquire()
    const breakOn = async (store: Store | undefined): Promise<void> => {
      const alone = new Holdfast(store as Store)
      opened.push(alone)
      await alone.breakHold('door')
    }
    await breakOn(stores[0])
    expect(hold.isValid).toBe(true)
    await breakOn(stores[1])
    expect(hold.isValid).toBe(false)
    expect(hold.signal.aborted).toBe(true)
  })

  it('leaves nothing on the members that had granted', async () => {
    const stores = [memory(), memory(), memory()]
    const members = await set(3, stores)
    const locks = client(members, { memberTimeout: '100ms', storeTimeout: '600ms' })
    await locks.ping()
    members[1]?.cut('claim')
    members[2]?.cut('claim')
    expect((await failureOf(() => locks.mutex('door').acquire())).code).toBe('STORE_UNAVAILABLE')
    const alone = new Holdfast(stores[0] as Store)
    opened.push(alone)
    await eventually('an empty line', async () => {
      for await (const _line of alone.inspect()) return false
      return true
    })
  })
})

describe('a state of a quorum', () => {
  it('is changed by one writer at a time', async () => {
    const members = await set()
    const clients = [client(members), client(members), client(members)]
    await Promise.all(
      clients.flatMap((locks) => Array.from({ length: 10 }, () => locks.latch('done', 30).countDown())),
    )
    expect(await clients[0]?.latch('done', 30).count()).toBe(0)
  })

  it('does not come back when it has lapsed, from a member that missed its last change', async () => {
    const members = await set()
    const open = () =>
      quorum(members, { memberTimeout: '100ms' }).connect({
        id: systemEnv.id(),
        space: 'default',
        push: () => {},
      })
    const [writer, reader] = [open(), open()]
    const old = await writer.write({ key: 'k', expect: null, value: 'old', retentionMs: null })
    members[2]?.cut()
    const expected = old.current?.version ?? null
    expect((await writer.write({ key: 'k', expect: expected, value: 'new', retentionMs: 200 })).written).toBe(
      true,
    )
    await eventually('the end of the value', async () => (await writer.read('k', false)) === null)
    members[2]?.heal()
    members[0]?.cut()
    expect(await reader.read('k', false)).toBe(null)
    await Promise.all([writer.close(), reader.close()])
  })

  it('that only one member has got is completed, or was never there', async () => {
    const members = await set()
    const [a, b, c] = members as [InterceptedStore, InterceptedStore, InterceptedStore]
    const writer = quorum(members).connect({ id: 'writer', space: 'default', push: () => {} })
    const reader = quorum(members).connect({ id: 'reader', space: 'default', push: () => {} })
    await writer.write({ key: 'k', expect: null, value: 'old', retentionMs: null })
    let writes = 0
    // The promises are made on all, the value reaches the first member only.
    const loseValue = (member: InterceptedStore): void => {
      member.around = (call, go) =>
        call.method === 'write' && String((call.about as { value: string }).value).includes('"new"')
          ? Promise.reject(new HoldfastError('STORE_UNAVAILABLE', 'lost', { retryable: true }))
          : go()
    }
    loseValue(b)
    loseValue(c)
    a.around = (call, go) => {
      if (call.method === 'write') writes++
      return go()
    }
    const old = await reader.read('k', false)
    const outcome = await writer
      .write({ key: 'k', expect: old?.version ?? null, value: 'new', retentionMs: null })
      .catch((error: unknown) => error)
    expect(outcome).toBeInstanceOf(HoldfastError)
    expect(writes).toBeGreaterThan(0)
    for (const member of members) member.heal()
    const seen = [await reader.read('k', false), await reader.read('k', false)]
    expect(seen[0]).toEqual(seen[1])
    expect(['old', 'new']).toContain(seen[0]?.value)
    await Promise.all([writer.close(), reader.close()])
  })
})

/** The member in whose line the one waiter stands. */
async function usherOf(members: readonly InterceptedStore[], locks: Holdfast): Promise<InterceptedStore> {
  await eventually('a waiter', async () => {
    for await (const { waiters } of locks.inspect()) if (waiters.length === 1) return true
    return false
  })
  const usher = members.find(({ calls }) => calls.some(({ method, about }) => isQueued(method, about)))
  if (!usher) throw new Error('no member has a line')
  return usher
}

function isClaimOf(about: unknown, resource: string): boolean {
  return (about as { resource?: string; mode?: string }).resource === resource && 'mode' in (about as object)
}

function isQueued(method: string, about: unknown): boolean {
  return method === 'claim' && (about as { mode?: string }).mode === 'queue'
}
