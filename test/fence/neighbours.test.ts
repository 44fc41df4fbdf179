import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { Holdfast } from '../../src/index.js'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { openSql } from './clients.mjs'
import { tempFolder, Worker } from './paused.js'
import { openScene, sqliteFile } from './sql-cases.js'

const COHORT_WORKER = fileURLToPath(new URL('cohort-worker.mjs', import.meta.url))
const PROCESSES = 4
const TASKS = 16
const ROUNDS = 10

const setting = { driver: 'sqlite', url: sqliteFile, skip: undefined }

/** A lock on a file of its own, whose holds are passed on inside this process. */
function openLock(): { locks: Holdfast; others: Holdfast } {
  const path = join(tempFolder(), 'locks.db')
  const [locks, others] = [new Holdfast(sqlite(path)), new Holdfast(sqlite(path))]
  onTestFinished(async () => {
    await locks.close({ drain: 0 })
    await others.close({ drain: 0 })
  })
  return { locks, others }
}

it('the write of a task that has released is refused when its neighbour has written', async () => {
  const { guard, table, row } = await openScene(setting)
  const lock = openLock().locks.mutex('order:42')
  const write = (fence: number, content: string): boolean =>
    guard.update(
      { resource: 'order:42', fence, isExclusive: true },
      { table, set: { content }, where: { id: 1 } },
    )

  const first = await lock.acquire()
  const [second, third] = [lock.acquire(), lock.acquire()]
  await first.release()
  const stale = await second
  expect(write(stale.fence, 'in time')).toBe(true)
  // Its task has run into a time-out and given the lock back, but a part of it goes on.
  await stale.release()
  const next = await third
  expect(next.fence, 'passed on without the store').toBe(stale.fence + 1)
  expect(write(next.fence, 'of the neighbour')).toBe(true)
  expect(() => write(stale.fence, 'late')).toThrow(
    expect.objectContaining({ code: 'STALE_FENCE', newestFence: next.fence }),
  )
  expect(() => write(first.fence, 'very late')).toThrow(expect.objectContaining({ code: 'STALE_FENCE' }))
  expect(await row()).toEqual({ content: 'of the neighbour', fence: next.fence })
  await next.release()
})

it('the write of a task that has lost the lock is refused when its neighbour has written', async () => {
  const { guard, table, ask, row } = await openScene(setting)
  const { locks, others } = openLock()
  const lock = locks.mutex('order:42')
  const write = async (hold: { resource: string; fence: number; isExclusive: boolean }, content: string) => {
    await ask('BEGIN IMMEDIATE')
    try {
      guard.check(hold)
      await ask(`UPDATE ${table} SET content = '${content}' WHERE id = 1`)
      await ask('COMMIT')
    } catch (error) {
      await ask('ROLLBACK')
      throw error
    }
  }

  const first = await lock.acquire()
  const [second, third] = [lock.acquire(), lock.acquire()]
  await first.release()
  const stale = await second
  await others.breakHold('order:42')
  const next = await third
  expect([stale.isValid, next.isValid]).toEqual([false, true])
  await write(next, 'of the neighbour')
  await expect(write(stale, 'late')).rejects.toMatchObject({ code: 'STALE_FENCE', newestFence: next.fence })
  expect((await row())?.content).toBe('of the neighbour')
  await next.release()
})

it('a process that stood still passes nothing on: its neighbours write after the other process, its holder not at all', async () => {
  const { url, table, ask } = await openScene(setting)
  const store = `sqlite:${join(tempFolder(), 'locks.db')}`
  await ask(`CREATE TABLE log (number INTEGER PRIMARY KEY, fence BIGINT, pid BIGINT, task TEXT)`)
  const order = { store, url, table, lease: 3000 }
  const paused = new Worker(COHORT_WORKER, { ...order, work: 'pause' })
  const { fence: stale } = await paused.next<{ fence: number }>()
  const other = new Worker(COHORT_WORKER, { ...order, work: 'tasks', tasks: 1, rounds: 1 })
  expect(await other.next()).toMatchObject({ written: 1 })
  paused.process.kill('SIGCONT')
  const { outcomes } = await paused.next<{ outcomes: string[] }>()
  // The holder had the lock before everybody, and writes after everybody.
  expect(outcomes).toEqual(['neighbour 1 written', 'neighbour 2 written', 'holder STALE_FENCE'])
  const log = await ask('SELECT fence, pid, task FROM log ORDER BY number')
  expect(log.map(({ pid }) => Number(pid))).toEqual([
    other.process.pid,
    paused.process.pid,
    paused.process.pid,
  ])
  const fences = log.map(({ fence }) => Number(fence))
  expect([stale, ...fences]).toEqual([stale, ...fences].sort((one, two) => one - two))
})

it(`the guard sees strictly increasing fences from ${PROCESSES} processes of ${TASKS} tasks each`, async () => {
  const { url, table, ask } = await openScene(setting)
  const store = `sqlite:${join(tempFolder(), 'locks.db')}`
  await ask(`CREATE TABLE log (number INTEGER PRIMARY KEY, fence BIGINT, pid BIGINT, task TEXT)`)
  const order = { store, url, table, lease: 30_000, work: 'tasks', tasks: TASKS, rounds: ROUNDS }
  const workers = Array.from({ length: PROCESSES }, () => new Worker(COHORT_WORKER, order))
  for (const worker of workers) expect(await worker.next()).toEqual({ written: TASKS * ROUNDS })

  const database = await openSql('sqlite', url)
  const log = (await database.ask('SELECT fence, pid FROM log ORDER BY number')).map(({ fence, pid }) => ({
    fence: Number(fence),
    pid: Number(pid),
  }))
  await database.close()
  expect(log.length).toBe(PROCESSES * TASKS * ROUNDS)
  let passes = 0
  for (const [index, { fence, pid }] of log.entries()) {
    const before = log[index - 1]
    if (!before) continue
    expect(fence, `number ${index}`).toBeGreaterThan(before.fence)
    if (fence === before.fence + 1 && pid === before.pid) passes++
  }
  // A run counts only if holds were passed on in it, and processes took turns.
  expect(passes).toBeGreaterThan(log.length / 10)
  expect(new Set(log.map(({ pid }) => pid)).size).toBe(PROCESSES)
})
