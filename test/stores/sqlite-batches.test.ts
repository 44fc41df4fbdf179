import { existsSync, readdirSync, readlinkSync } from 'node:fs'
import { describe, expect, it, vi } from 'vitest'
import { type Cancel, type Env, systemEnv } from '../../src/base/env.js'
import { HoldfastError } from '../../src/base/errors.js'
import { Batches } from '../../src/stores/sqlite/batches.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import type { LockFile } from '../../src/stores/sqlite/lock-file.js'
import { connect, openRaw, request, tempFolder, testEnv } from './sqlite/helpers.js'

class Busy extends Error {
  readonly code = 'SQLITE_BUSY'
}

/** A file that only counts its transactions, and can be told how the next ones go. */
function fakeFile(failures: unknown[] = []) {
  const log: string[] = []
  const transact = (kind: string, work: () => void): void => {
    const failure = failures.shift()
    log.push(failure ? `${kind} fails` : kind)
    if (failure) throw failure
    work()
  }
  const file = {
    write(work: () => void) {
      transact('write', work)
      return []
    },
    read: (work: () => void) => transact('read', work),
    isReplaced: () => false,
    version: () => 1,
    close: () => void log.push('close'),
  }
  return { log, file: file as unknown as LockFile }
}

/** With a clock that stands still: a batch ends after ten milliseconds, whatever they were spent on. */
function batchesOf(file: LockFile, env: Env = testEnv(0)): Batches {
  return new Batches({ path: '/x.db', env, open: async () => file, tell: () => {}, replaced: () => {} })
}

describe('calls of one event loop iteration', () => {
  it('share a transaction, in the order in which they came', async () => {
    const { file, log } = fakeFile()
    const batches = batchesOf(file)
    const order: number[] = []
    const calls = Array.from({ length: 100 }, (_, index) => batches.submit(() => order.push(index)))
    await Promise.all(calls)
    expect(log).toEqual(['write'])
    expect(order).toEqual(Array.from({ length: 100 }, (_, index) => index))
  })

  it('only read when all of them only read', async () => {
    const { file, log } = fakeFile()
    const batches = batchesOf(file)
    await Promise.all([batches.submit(() => 1, { isRead: true }), batches.submit(() => 2, { isRead: true })])
    await Promise.all([batches.submit(() => 1, { isRead: true }), batches.submit(() => 2)])
    expect(log).toEqual(['read', 'write'])
  })

  it('are split when they take long, so that other processes get the file', async () => {
    const { file, log } = fakeFile()
    const env = testEnv(0)
    const batches = batchesOf(file, env)
    const slow = (): void => {
      env.nowMs += 4
    }
    await Promise.all(Array.from({ length: 9 }, () => batches.submit(slow)))
    expect(log).toEqual(['write', 'write', 'write'])
  })

  it('come after renewals, which cannot wait for thousands of others', async () => {
    const { file } = fakeFile()
    const env = testEnv(0)
    const batches = batchesOf(file, env)
    const order: string[] = []
    const slow = (name: string) => (): void => {
      order.push(name)
      env.nowMs += 10
    }
    const claims = ['a', 'b', 'c'].map((name) => batches.submit(slow(name)))
    await claims[0]
    const renewals = ['1', '2'].map((name) => batches.submit(slow(name), { isUrgent: true }))
    await Promise.all([...claims, ...renewals])
    expect(order).toEqual(['a', '1', '2', 'b', 'c'])
  })

  it('are all run again, from the start, when the file was busy at the end', async () => {
    const runs: string[] = []
    const { file } = fakeFile()
    let commits = 0
    file.write = (work) => {
      work()
      commits += 1
      if (commits < 3) throw new Busy()
      return []
    }
    const batches = batchesOf(file)
    const results = await Promise.all(['a', 'b'].map((name) => batches.submit(() => runs.push(name))))
    expect(runs).toEqual(['a', 'b', 'a', 'b', 'a', 'b'])
    expect(results).toEqual([5, 6])
  })

  it('fail together when SQLite fails, and the file is opened anew', async () => {
    const { file, log } = fakeFile([Object.assign(new Error('disk'), { code: 'SQLITE_IOERR' })])
    const batches = batchesOf(file)
    const results = await Promise.allSettled([batches.submit(() => 1), batches.submit(() => 2)])
    for (const result of results)
      expect(result).toMatchObject({
        status: 'rejected',
        reason: { code: 'STORE_UNAVAILABLE', retryable: true },
      })
    expect(await batches.submit(() => 3)).toBe(3)
    expect(log).toEqual(['write fails', 'close', 'write'])
  })

  it('do not fail for what one of them did wrong', async () => {
    const { file, log } = fakeFile()
    const batches = batchesOf(file)
    const results = await Promise.allSettled([
      batches.submit(() => 1),
      batches.submit(() => {
        throw new HoldfastError('UNSUPPORTED', 'too high')
      }),
      batches.submit(() => 3),
    ])
    expect(results).toMatchObject([{ value: 1 }, { reason: { code: 'UNSUPPORTED' } }, { value: 3 }])
    expect(log).toEqual(['write', 'write'])
  })
})

/** How often this process has the file open; 0 where the system does not tell. */
function handlesOn(path: string): number {
  const folder = '/proc/self/fd'
  if (!existsSync(folder)) return 0
  return readdirSync(folder).filter((name) => linkOf(`${folder}/${name}`) === path).length
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

describe('a file that somebody else has', () => {
  it('is asked for again, with jitter, and the event loop goes on meanwhile', async () => {
    const path = tempFolder().path('locks.db')
    const waits: number[] = []
    const timer = (ms: number, run: () => void, options: { keepAlive: boolean }): Cancel => {
      if (ms < 1000 && ms > 0) waits.push(ms)
      return systemEnv.timer(ms, run, options)
    }
    // Its clock stands still: nothing is given up, however long this takes.
    const client = connect(sqlite(path, { env: { ...testEnv(1_000_000), timer } }))
    await client.pulse([])
    const raw = await openRaw(path)
    raw.exec('BEGIN IMMEDIATE')
    const claims = Promise.all([client.claim(request('r', '1')), client.claim(request('r', '2'))])
    // The timers of this very process go on: nothing blocks it.
    await vi.waitFor(() => expect(waits.length).toBeGreaterThan(8), 30_000)
    raw.exec('COMMIT')
    expect(await claims).toMatchObject([{ status: 'granted' }, { status: 'waiting' }])
    // By then they no longer grow, so that only jitter makes them differ.
    expect(new Set(waits.slice(5)).size).toBeGreaterThan(2)
    expect(Math.max(...waits)).toBeLessThanOrEqual(16)
  })

  it('does not block reads', async () => {
    const path = tempFolder().path('locks.db')
    const client = connect(sqlite(path, { env: testEnv(1_000_000) }))
    await client.claim(request('r', '1'))
    const raw = await openRaw(path)
    raw.exec('BEGIN IMMEDIATE')
    const waiting = client.claim(request('q', '2'))
    const seen: string[] = []
    for await (const view of client.inspect({ prefix: '' })) seen.push(view.resource)
    expect(seen).toEqual(['r'])
    raw.exec('ROLLBACK')
    expect(await waiting).toMatchObject({ status: 'granted' })
  })

  it('is given up after three seconds, and works again afterwards', async () => {
    const path = tempFolder().path('locks.db')
    const env = testEnv(1_000_000)
    const client = connect(sqlite(path, { env }))
    await client.pulse([])
    const raw = await openRaw(path)
    raw.exec('BEGIN IMMEDIATE')
    const early = Promise.resolve(client.claim(request('r', '1'))).catch((error: unknown) => error)
    env.nowMs += 2000
    const late = client.claim(request('r', '2'))
    env.nowMs += 1001
    expect(await early).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true, store: 'sqlite' })
    raw.exec('COMMIT')
    expect(await late).toMatchObject({ status: 'granted' })
  })

  it('is waited for as long as others change it, and the order of the claims is kept', async () => {
    const path = tempFolder().path('locks.db')
    const env = testEnv(1_000_000)
    let rounds = 0
    env.timer = (...args) => {
      rounds += 1
      return systemEnv.timer(...args)
    }
    const client = connect(sqlite(path, { env }))
    await client.pulse([])
    const raw = await openRaw(path)
    raw.exec('BEGIN IMMEDIATE')
    const ids = Array.from({ length: 50 }, (_, index) => String(index))
    const claims = Promise.all(ids.map((id) => client.claim(request('r', id))))
    for (let second = 0; second < 10; second += 1) {
      const roundsBefore = rounds
      // Two rounds, of which the second surely began after the change.
      await vi.waitFor(() => expect(rounds).toBeGreaterThan(roundsBefore + 2), 30_000)
      raw.exec('UPDATE holdfast SET counter = counter + 1; COMMIT; BEGIN IMMEDIATE')
      env.nowMs += 1000
    }
    raw.exec('COMMIT')
    expect((await claims).map(({ status }) => status)).toEqual(['granted', ...Array(49).fill('waiting')])
    for await (const line of client.inspect({ prefix: 'r' }))
      expect(line.claims.map(({ id }) => id)).toEqual(ids)
  })

  it('has each claim once among the calls that wait for it, however often it is asked for', async () => {
    const path = tempFolder().path('locks.db')
    const client = connect(sqlite(path, { env: testEnv(1_000_000) }))
    await client.pulse([])
    const raw = await openRaw(path)
    raw.exec('BEGIN IMMEDIATE')
    const asked = [client.claim(request('r', '1')), client.claim(request('r', '1'))]
    const others = [client.claim(request('q', '1')), client.claim(request('r', '2'))]
    raw.exec('COMMIT')
    const [first, again] = await Promise.all(asked)
    expect(again).toBe(first)
    expect(await Promise.all(others)).toMatchObject([{ status: 'granted' }, { status: 'waiting' }])
    // What is asked for after it was answered is another call.
    expect(first).toMatchObject({ status: 'granted', isWanted: false })
    expect(await client.claim(request('r', '1'))).toMatchObject({ status: 'granted', isWanted: true })
  })

  it('can be opened while others write', async () => {
    const path = tempFolder().path('locks.db')
    await connect(sqlite(path)).claim(request('r', '1'))
    const raw = await openRaw(path)
    raw.exec('BEGIN IMMEDIATE')
    const second = connect(sqlite(path))
    for await (const { resource } of second.inspect({ prefix: '' })) expect(resource).toBe('r')
    raw.exec('ROLLBACK')
  })

  it('is not given up because this process was slow to come to it', async () => {
    const path = tempFolder().path('locks.db')
    const env = testEnv(1_000_000)
    const raw = await openRaw(path)
    raw.exec('PRAGMA journal_mode = WAL; BEGIN EXCLUSIVE')
    let retries = 0
    env.timer = (...args) => {
      retries += 1
      return systemEnv.timer(...args)
    }
    const claim = connect(sqlite(path, { env })).claim(request('r', '1'))
    env.nowMs += 5000
    await vi.waitFor(() => expect(retries).toBeGreaterThan(5), 30_000)
    raw.exec('COMMIT')
    expect(await claim).toMatchObject({ status: 'granted' })
  })

  it('is waited for when it is opened, too', async () => {
    const path = tempFolder().path('locks.db')
    const raw = await openRaw(path)
    raw.exec('PRAGMA journal_mode = WAL; BEGIN EXCLUSIVE')
    const env = testEnv(1_000_000)
    let retries = 0
    env.timer = (...args) => {
      retries += 1
      return systemEnv.timer(...args)
    }
    const client = connect(sqlite(path, { env }))
    const given = Promise.resolve(client.claim(request('r', '1'))).catch((error: unknown) => error)
    await vi.waitFor(() => expect(retries).toBeGreaterThan(5), 30_000)
    env.nowMs += 3001
    expect(await given).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
    // One for the raw user and one for the store, however often it has tried.
    expect(handlesOn(path)).toBeLessThanOrEqual(2)
    const waiting = client.claim(request('r', '2'))
    raw.exec('COMMIT')
    expect(await waiting).toMatchObject({ status: 'granted' })
  })
})
