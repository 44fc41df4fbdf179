import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { assertIncreasing, eventually } from '../../src/testing/conformance/checks.js'
import { type ServerName, serverAvailability } from '../servers/availability.js'
import {
  type Both,
  numbersIn,
  obstacle,
  otherThan,
  type Start,
  startBoth,
  VERSIONS,
  type Version,
  VersionProcess,
} from './processes.js'

/** A store that both versions reach by its URL. */
export interface SharedStore {
  readonly name: string
  readonly needs?: ServerName
  /** Why it has no semaphores and barriers. */
  readonly locksOnly?: string
  /** An empty one. Processes that are killed must be forgotten within seconds. */
  start(): Promise<{ url: string; stop(): Promise<unknown> }>
}

const TASKS = 2
const TIMES = 15
/** Of processes that are killed, and of those that wait for their locks. */
const SHORT = '4s'

/** For failures only: a busy machine can take long. */
const LIMIT_MS = 300_000
const PATIENCE_MS = 120_000

/** Whether `npm run test:versions` runs it: all stores are too much for every change. */
const isFull = process.env['HOLDFAST_TEST_VERSIONS'] === 'all'

/** A store with a process of each version that the cases share. */
interface Stage {
  readonly url: string
  readonly both: Both
}

/**
 * The tests of two versions on one store. `inSuite`: also without `npm run test:versions`. The
 * cases use names of their own, and run side by side: they mostly wait.
 */
export function describeVersions(store: SharedStore, { inSuite = false } = {}): void {
  const missing = obstacle ?? (store.needs ? serverAvailability(store.needs) : null)
  const reason = isFull || inSuite ? missing : 'npm run test:versions runs it'
  const title = `the previous and the present version on ${store.name}`
  const fullTitle = reason === null ? title : `${title} (skipped: ${reason})`
  describe.skipIf(reason !== null)(fullTitle, { timeout: LIMIT_MS }, () => {
    describe.each(VERSIONS)('laid out by the %s one', { concurrent: true }, (first) => {
      const stage = setUp(store, first)
      for (const order of ['cohort', 'strict'] as const)
        declare(`count exactly, with fences that rise: ${order}`, stage, async (_both, start) => {
          const versions = [first, otherThan(first), first, otherThan(first)]
          const processes = await Promise.all(versions.map((version) => start(version, { order })))
          await countTogether(processes, `count-${order}`)
        })
      // Whoever made the tables, the rest is the same.
      if (first === 'previous') for (const one of VERSIONS) declareCases(one, stage, store)
    })
  })
}

/** The version `first` opens the store before the other one. */
function setUp(store: SharedStore, first: Version): () => Stage {
  let stage: Stage | undefined
  const ends: (() => Promise<unknown>)[] = []
  beforeAll(async () => {
    const place = await store.start()
    const { url } = place
    ends.push(() => place.stop())
    const start: Start = (version) => VersionProcess.start(version, url, (kill) => ends.unshift(kill))
    const opener = await start(first)
    const follower = await start(otherThan(first))
    const both = { [first]: opener, [otherThan(first)]: follower } as unknown as Both
    stage = { url, both }
  })
  afterAll(async () => {
    for (const end of ends) await end()
  })
  return () => {
    if (!stage) throw new Error('no store')
    return stage
  }
}

/** `start`: of processes that are killed when the case ends. */
type Case = (both: Both, start: Start) => Promise<void>

function declare(title: string, stage: () => Stage, run: Case, isSkipped = false): void {
  it.skipIf(isSkipped)(title, async ({ onTestFinished }) => {
    const { url, both } = stage()
    await run(both, (version, options) => VersionProcess.start(version, url, onTestFinished, options))
  })
}

function declareCases(one: Version, stage: () => Stage, { locksOnly }: SharedStore): void {
  const other = otherThan(one)
  const name = (what: string): string => `${what}-${one}`
  const test = (title: string, run: Case, isSkipped = false): void =>
    declare(`with the ${one} version as the first: ${title}`, stage, run, isSkipped)

  test('a mutex goes from one to the other in the order of arrival', async (both) => {
    assertIncreasing(await takeTurns(both, name('line'), one))
  })

  test('readers of both read together, and writers of both exclude', async (both) => {
    const book = name('book')
    const readers = [
      await both[one].ask('acquire', 'read', book),
      await both[other].ask('acquire', 'read', book),
    ]
    expect(await both[other].ask('tryAcquire', 'write', book)).toBeNull()
    const writing = both[other].ask('acquire', 'write', book)
    await waiting(both[one], book, 1)
    // A reader that comes after a writer of the other version waits behind it.
    expect(await both[one].ask('tryAcquire', 'read', book)).toBeNull()
    await both[one].ask('release', readers[0]?.hold ?? -1)
    expect(await both[one].ask('line', book)).toMatchObject({ waiters: 1 })
    await both[other].ask('release', readers[1]?.hold ?? -1)
    const writer = await writing
    expect(await both[one].ask('tryAcquire', 'read', book)).toBeNull()
    const reading = both[one].ask('acquire', 'read', book)
    await waiting(both[other], book, 1)
    await both[other].ask('release', writer.hold)
    expect((await reading).fence).toBeGreaterThan(writer.fence)
  })

  test(
    'a semaphore has its permits once for both',
    async (both) => {
      const pool = name('pool')
      const first = await both[one].ask('acquire', 'semaphore', pool)
      await both[one].ask('acquire', 'semaphore', pool)
      await both[other].ask('acquire', 'semaphore', pool)
      for (const version of VERSIONS)
        expect(await both[version].ask('tryAcquire', 'semaphore', pool)).toBeNull()
      const fourth = both[other].ask('acquire', 'semaphore', pool)
      await waiting(both[one], pool, 1)
      await both[one].ask('release', first.hold)
      expect((await fourth).fence).toBeGreaterThan(first.fence)
      expect(await both[one].ask('line', pool)).toEqual({ holders: 3, waiters: 0 })
    },
    locksOnly !== undefined,
  )

  test('an election has one leader, and the next one after a resignation and a death', async (_both, start) => {
    const both = await startBoth(start, { presence: SHORT })
    const office = name('office')
    const first = await both[one].ask('campaign', office, one)
    const second = both[other].ask('campaign', office, other, { lease: SHORT })
    expect(await both[other].ask('leader', office)).toBe(one)
    await waiting(both[one], `election:${office}`, 1)
    await both[one].ask('resign', first.leadership)
    const { term } = await second
    expect(term).toBeGreaterThan(first.term)
    expect(await both[one].ask('leader', office)).toBe(other)
    const third = both[one].ask('campaign', office, one)
    await waiting(both[one], `election:${office}`, 1)
    await both[other].kill()
    expect((await third).term).toBeGreaterThan(term)
  })

  test('once runs in one of them', async (both) => {
    const times = { atLeast: '10m', atMost: '1h' }
    expect(await both[one].ask('once', name('tick'), times)).toBe(true)
    expect(await both[other].ask('once', name('tick'), times)).toBe(false)
    expect(await both[one].ask('once', name('tick'), times)).toBe(false)
  })

  test('a latch counts both', async (both) => {
    const opened = [both[one], both[other]].map((process) => process.ask('waitForLatch', name('latch'), 2))
    await both[one].ask('countDown', name('latch'), 2)
    await both[other].ask('countDown', name('latch'), 2)
    await Promise.all(opened)
  })

  test(
    'a barrier waits for both',
    async (both) => {
      for (let round = 0; round < 3; round++)
        await Promise.all(VERSIONS.map((version) => both[version].ask('meet', name('barrier'), 2)))
    },
    locksOnly !== undefined,
  )

  test('a hold of the one is adopted and broken by the other', async (both) => {
    const passed = await both[one].ask('acquire', 'mutex', name('passed'))
    const text = await both[one].ask('export', passed.hold)
    const adopted = await both[other].ask('adopt', text)
    expect(adopted.fence).toBeGreaterThan(passed.fence)
    expect(await both[one].ask('tryAcquire', 'mutex', name('passed'))).toBeNull()
    expect(await both[other].ask('release', adopted.hold)).toBe(true)

    const broken = await both[one].ask('acquire', 'mutex', name('broken'))
    await both[other].ask('breakHold', name('broken'))
    await eventually('the loss', async () => !(await both[one].ask('isValid', broken.hold)), PATIENCE_MS)
    expect((await both[other].ask('acquire', 'mutex', name('broken'))).fence).toBeGreaterThan(broken.fence)
  })

  test('kill -9 of a holder and of a waiter of the one leaves the lock to the other', async (both, start) => {
    const [victim, waiter, heir] = await Promise.all([
      start(one, { presence: SHORT }),
      start(one, { presence: SHORT }),
      start(other, { presence: SHORT }),
    ])
    const held = await victim.ask('acquire', 'mutex', name('grave'), { lease: SHORT })
    await waiter.ask('queue', 'mutex', name('grave'), { lease: SHORT })
    await waiting(both[other], name('grave'), 1)
    const next = heir.ask('acquire', 'mutex', name('grave'))
    await waiting(both[one], name('grave'), 2)
    await Promise.all([victim.kill(), waiter.kill()])
    expect((await next).fence).toBeGreaterThan(held.fence)
  })

  test('both count exactly while processes of the one are killed', async (_both, start) => {
    const both = await startBoth(start, { order: 'cohort', presence: SHORT })
    const victims = await Promise.all([1, 2].map(() => start(one, { presence: SHORT })))
    for (const victim of victims) {
      await victim.ask('hammer', name('storm'), SHORT)
      await eventually('its turns', async () => (await victim.ask('hammered')) > 1, PATIENCE_MS)
    }
    // Each dies as it happens to be: holding, waiting or between.
    const counting = countTogether([both[one], both[other]], name('storm'))
    for (const victim of victims) await victim.kill()
    await counting
  })
}

/** Waiters of both versions are served in the order in which they came. Returns the fences. */
async function takeTurns(both: Both, name: string, first: Version): Promise<number[]> {
  const order = [first, otherThan(first), first, otherThan(first), otherThan(first), first]
  const holder = await both[first].ask('acquire', 'mutex', name)
  for (const [index, version] of order.entries()) {
    await both[version].ask('queue', 'mutex', name)
    await waiting(both[otherThan(version)], name, index + 1)
  }
  await both[first].ask('release', holder.hold)
  const grants = async () => ({
    previous: await both.previous.ask('grants', name),
    present: await both.present.ask('grants', name),
  })
  await eventually(
    'all have had it',
    async () => {
      const { previous, present } = await grants()
      return previous.length + present.length === order.length
    },
    PATIENCE_MS,
  )
  const had = await grants()
  const served = VERSIONS.flatMap((version) => had[version].map((fence) => ({ version, fence })))
  served.sort((a, b) => a.fence - b.fence)
  expect(served.map(({ version }) => version)).toEqual(order)
  return [holder.fence, ...served.map(({ fence }) => fence)]
}

/** Each of the processes counts in a file that nothing but the lock protects. */
async function countTogether(processes: readonly VersionProcess[], name: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-versions-'))
  const [counter, ledger] = [join(folder, 'counter'), join(folder, 'ledger')]
  try {
    writeFileSync(counter, '0')
    await Promise.all(processes.map((each) => each.ask('count', name, counter, ledger, TASKS, TIMES)))
    expect(numbersIn(counter)).toEqual([processes.length * TASKS * TIMES])
    const fences = numbersIn(ledger)
    expect(fences).toHaveLength(processes.length * TASKS * TIMES)
    assertIncreasing(fences)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function waiting(process: VersionProcess, name: string, count: number): Promise<void> {
  const isSo = async (): Promise<boolean> => (await process.ask('line', name)).waiters === count
  await eventually(`${count} waiters for ${name}`, isSo, PATIENCE_MS)
}
