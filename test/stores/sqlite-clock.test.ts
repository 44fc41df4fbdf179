import { describe, expect, it } from 'vitest'
import { type Env, systemEnv } from '../../src/base/env.js'
import { clockOf, machineClock } from '../../src/stores/sqlite/machine-clock.js'
import { SqliteStore } from '../../src/stores/sqlite/store.js'
import { ask, beat, connect, openRaw, request, tempFolder, testEnv } from './sqlite/helpers.js'

function storeOf(path: string, env: Env, bootId: string | null): SqliteStore {
  return new SqliteStore({ path, env, bootId, driver: undefined })
}

describe.each([
  ['where the system tells which start it is', 'boot-1', 'boot-2'],
  ['where it does not', null, null],
])('a restart of the machine, %s', (_, before, after) => {
  it('leaves every claim what was left of its time, and no more', async () => {
    const path = tempFolder().path('locks.db')
    const old = testEnv(9_000_000)
    const holder = connect(storeOf(path, old, before))
    const first = (await holder.claim(request('r', 'held', { leaseMs: 10_000 }))) as { fence: number }
    await holder.claim(request('r', 'waits', { presenceMs: 20_000 }))
    await holder.write({ key: 'k', expect: null, value: 'v', retentionMs: 30_000 })
    old.nowMs += 4000
    // The last thing that is written before the machine stops.
    await holder.claim(request('other', 'x', { leaseMs: 1000 }))
    await holder.close()

    const now = testEnv(50)
    const client = connect(storeOf(path, now, after))
    expect(await client.claim(request('r', 'new', { mode: 'try' }))).toMatchObject({ status: 'refused' })
    now.nowMs += 5999
    expect(await client.claim(request('r', 'new', { mode: 'try' }))).toMatchObject({ status: 'refused' })
    expect(await client.read('k', false)).toMatchObject({ value: 'v' })
    now.nowMs += 2
    // The dead holder's time is up; the dead waiter is next, and its time ends like anybody's.
    expect(await client.pulse([beat('r', 'held')])).toEqual([{ status: 'gone' }])
    now.nowMs += 10_000
    const next = (await client.claim(request('r', 'new', { mode: 'try' }))) as { fence: number }
    expect(next.fence).toBeGreaterThan(first.fence)
    now.nowMs += 10_000
    expect(await client.read('k', false)).toBeNull()
  })

  it('moves the times once, whoever comes after', async () => {
    const path = tempFolder().path('locks.db')
    const old = testEnv(9_000_000)
    const holder = connect(storeOf(path, old, before))
    await holder.claim(request('r', 'held', { leaseMs: 10_000 }))
    await holder.close()
    const now = testEnv(50)
    const clients = Array.from({ length: 5 }, () => connect(storeOf(path, now, after)))
    await Promise.all(clients.map((client) => client.pulse([])))
    expect(ask(await openRaw(path), 'SELECT expires FROM claim')).toBe(10_050)
  })
})

describe('a file under two clocks', () => {
  it('is refused by the process that was there first, which takes nothing over again', async () => {
    const path = tempFolder().path('locks.db')
    const here = connect(storeOf(path, testEnv(9_000_000), 'machine-1'))
    await here.claim(request('r', 'held'))
    const there = connect(storeOf(path, testEnv(100), 'machine-2'))
    expect(await there.claim(request('r', 'x', { mode: 'try' }))).toMatchObject({ status: 'refused' })
    for (let attempt = 0; attempt < 3; attempt += 1) {
      await expect(here.pulse([beat('r', 'held')])).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
        retryable: false,
        message: expect.stringContaining('one machine only'),
      })
    }
    expect(await there.claim(request('r', 'x', { mode: 'try' }))).toMatchObject({ status: 'refused' })
  })

  it('is noticed where the system tells no boot id, too', async () => {
    const path = tempFolder().path('locks.db')
    const here = connect(storeOf(path, testEnv(9_000_000), null))
    await here.claim(request('r', 'held'))
    await connect(storeOf(path, testEnv(100), null)).pulse([])
    await expect(here.pulse([beat('r', 'held')])).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      retryable: false,
    })
  })

  it('is refused when the machine is the same, but a container has a clock of its own', async () => {
    const path = tempFolder().path('locks.db')
    const host = connect(storeOf(path, testEnv(9_000_000), 'boot'))
    await host.claim(request('r', 'held'))
    const container = connect(storeOf(path, testEnv(100), 'boot'))
    await expect(container.pulse([])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: false })
    expect(await host.pulse([beat('r', 'held')])).toMatchObject([{ status: 'held' }])
  })
})

/** What the processes do with it is in sqlite-runtimes.test.ts. */
describe('the clock of the machine', () => {
  const asked: number[] = []
  const bun = {
    name: 'Bun',
    platform: 'linux',
    loadClockGetTime: () => (clock: number, time: BigInt64Array) => {
      asked.push(clock)
      time.set([12n, 345_678_900n])
      return 0
    },
  }

  it('is the one of Node', () => {
    expect(machineClock()).toBe(systemEnv.now)
  })

  it('is read from the C library where a runtime counts from the start of each process', () => {
    expect(clockOf(bun)()).toBe(12_345.6789)
    // CLOCK_MONOTONIC, as Node: the other clocks of Linux go on while the machine sleeps, or are not slewed.
    expect(asked).toEqual([1])
  })

  it.each(['darwin', 'win32'])('is missing for such a runtime on %s', (platform) => {
    expect(() => clockOf({ ...bun, platform })).toThrow(
      expect.objectContaining({
        code: 'UNSUPPORTED',
        retryable: false,
        message: expect.stringMatching(new RegExp(`Bun on ${platform}.*use Node.*a store with a server`)),
      }),
    )
  })

  it('is missing where the C library cannot be called', () => {
    const cause = new Error('no library')
    const loadClockGetTime = (): never => {
      throw cause
    }
    expect(() => clockOf({ ...bun, name: 'Deno', loadClockGetTime })).toThrow(
      expect.objectContaining({
        code: 'UNSUPPORTED',
        cause,
        message: expect.stringContaining('--allow-all'),
      }),
    )
  })
})

describe('the wall clock', () => {
  it('may jump: no lease becomes longer or shorter, and fences still grow', async () => {
    const env = testEnv(1_000_000)
    let wallMs = 1_800_000_000_000
    env.wallMs = () => wallMs
    const client = connect(storeOf(tempFolder().path('locks.db'), env, 'boot'))
    const fences: number[] = []
    for (const jump of [0, -86_400_000, 365 * 86_400_000, -700 * 86_400_000]) {
      wallMs += jump
      const id = `after ${jump}`
      const reply = await client.claim(request('r', id, { leaseMs: 10_000 }))
      fences.push((reply as { fence: number }).fence)
      env.nowMs += 9999
      expect(await client.claim(request('r', 'x', { mode: 'try' }))).toMatchObject({ status: 'refused' })
      env.nowMs += 2
      expect(await client.release('r', id)).toBe(false)
    }
    expect(fences).toEqual([...fences].sort((a, b) => a - b))
    expect(new Set(fences).size).toBe(fences.length)
  })
})
