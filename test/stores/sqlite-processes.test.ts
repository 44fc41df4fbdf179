import { existsSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { describe, expect, it } from 'vitest'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { eventually } from '../../src/testing/conformance/checks.js'
import { ask, beat, CHILD, Child, connect, openRaw, request, tempFolder } from './sqlite/helpers.js'

interface Tally {
  pairs: number
  longestMs: number
  /** How long it has counted, without the time in which its process stood still. */
  activeMs: number
}

const nowMs = (): number => Number(process.hrtime.bigint()) / 1e6

describe('processes that start together', () => {
  it('all find or make the same file', async () => {
    for (let round = 0; round < 3; round += 1) {
      const path = tempFolder().path('locks.db')
      const children = Array.from({ length: 6 }, () => new Child(['open', path]))
      expect(await Promise.all(children.map((child) => child.next()))).toEqual(Array(6).fill('opened'))
      expect(await Promise.all(children.map((child) => child.exit))).toEqual(Array(6).fill(0))
      const raw = await openRaw(path)
      expect(ask(raw, 'SELECT count(*) FROM holdfast')).toBe(1)
      expect(ask(raw, 'PRAGMA integrity_check')).toBe('ok')
    }
  })
})

describe('processes that are killed', () => {
  it('leave a sound file, an order without gaps in trust, and lines that drain', async () => {
    const folder = tempFolder()
    const path = folder.path('locks.db')
    const log = folder.path('fences.log')
    const leaseMs = 1000
    const start = (): Child => new Child(['hammer', path, 'hot', log, String(leaseMs)])
    const children = Array.from({ length: 5 }, start)
    let kills = 0
    for (; kills < 25; kills += 1) {
      const index = Math.floor(Math.random() * children.length)
      const victim = children[index]
      if (!victim) throw new Error('no such child')
      // Some die while they start, some while they claim, hold, release or write.
      if (kills % 3 > 0) await Promise.race([victim.next(), delay(2000)]).catch(() => {})
      await delay(Math.random() * 60)
      await victim.kill()
      children[index] = start()
    }
    await eventually('more than 20 holds', () => existsSync(log) && fencesIn(log).length > 20)
    for (const child of children) child.send('stop')
    const tallies = await Promise.all(children.map(lastWord))
    const fences = fencesIn(log)
    const pairs = tallies.map((tally) => tally.pairs).join(', ')
    console.log(`killed ${kills}; ${fences.length} holds in all; the last five processes made ${pairs} pairs`)
    for (const [index, fence] of fences.entries()) expect(fence).toBeGreaterThan(fences[index - 1] ?? 0)

    const raw = await openRaw(path)
    expect(ask(raw, 'PRAGMA integrity_check')).toBe('ok')
    // What the killed left lapses: somebody new gets the lock, within the lease and presence of the dead.
    const client = connect(sqlite(path))
    let reply = await client.claim(request('hot', 'last'))
    const deadline = performance.now() + 30 * leaseMs
    while (reply.status === 'waiting' && performance.now() < deadline) {
      await delay(50)
      reply = await client.claim(request('hot', 'last'))
    }
    expect(reply).toMatchObject({ status: 'granted' })
    expect(ask(raw, 'SELECT count(*) FROM claim')).toBe(1)
  }, 120_000)
})

/** The fences that were written in time, in the order in which they were written. */
function fencesIn(log: string): number[] {
  const lines = readFileSync(log, 'utf8').trim().split('\n')
  const late = new Set(lines.filter((line) => line.startsWith('late ')).map((line) => line.slice(5)))
  return lines.filter((line) => !line.startsWith('late ') && !late.has(line)).map(Number)
}

/** The last message of a child that may say `ready` before. */
async function lastWord(child: Child): Promise<Tally> {
  for (;;) {
    const message = await child.next<Tally | string>()
    if (typeof message !== 'string') return message
  }
}

describe('processes that compete', () => {
  it('for one lock: take turns', async () => {
    const tallies = await compete(['hot', 'hot', 'hot', 'hot'])
    for (const tally of tallies) expect(tally.pairs).toBeGreaterThanOrEqual(dueTo(tally, tallies) / 5)
  })

  it('for the file only: none of them starves', async () => {
    const tallies = await compete(['a', 'b', 'c', 'd'])
    for (const tally of tallies) expect(tally.pairs).toBeGreaterThanOrEqual(dueTo(tally, tallies) / 10)
    expect(Math.max(...tallies.map((tally) => tally.longestMs))).toBeLessThan(10_000)
  })

  async function compete(resources: string[]): Promise<Tally[]> {
    const path = tempFolder().path('locks.db')
    const children = resources.map((resource) => new Child(['hammer', path, resource, '', '30000', '500']))
    for (const child of children) expect(await child.next()).toBe('ready')
    for (const child of children) child.send('count')
    await Promise.any(children.map((child) => child.next()))
    for (const child of children) child.send('stop')
    const tallies = await Promise.all(children.map(lastWord))
    const shown = tallies.map(({ pairs, longestMs }) => `${pairs} pairs, longest ${longestMs.toFixed(0)} ms`)
    console.log(`${resources.join(' ')}: ${shown.join('; ')}`)
    return tallies
  }

  /** As many as the others have on average, or less by as much as the process was there for a shorter time. */
  function dueTo({ activeMs }: Tally, tallies: Tally[]): number {
    const mean = tallies.reduce((sum, { pairs }) => sum + pairs, 0) / tallies.length
    return (mean * activeMs) / Math.max(...tallies.map((tally) => tally.activeMs))
  }
})

describe('a socket', () => {
  it('wakes a process that waits', async () => {
    const path = tempFolder().path('locks.db')
    const client = connect(sqlite(path))
    await client.claim(request('r', '0'))
    const child = new Child(['waiter', path, 'r'])
    const latencies: number[] = []
    for (let round = 0; round < 200; round += 1) {
      expect(await child.next()).toBe('waiting')
      const releasedAt = nowMs()
      await client.release('r', String(round))
      latencies.push((await child.next<number>()) - releasedAt)
      client.news.length = 0
      const waits = await client.claim(request('r', String(round + 1)))
      if (waits.status === 'waiting') await client.told('granted')
      child.send(round < 199 ? 'again' : 'stop')
    }
    expect(await child.exit).toBe(0)
    latencies.sort((a, b) => a - b)
    const at = (share: number): string => (latencies[Math.floor(latencies.length * share)] ?? 0).toFixed(2)
    console.log(`release to push in another process: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`)
  })
})

describe('a process with nothing else to do', () => {
  it('ends, although it stands in a line and watches a key', async () => {
    const path = tempFolder().path('locks.db')
    const client = connect(sqlite(path))
    await client.claim(request('r', 'held'))
    const child = new Child(['idle', path, 'r'])
    expect(await child.next()).toBe('waiting')
    expect(await child.exit).toBe(0)
    expect(await client.pulse([beat('r', 'held')])).toMatchObject([{ status: 'held' }])
  })
})

describe('worker threads', () => {
  it('share a file like processes do', async () => {
    const folder = tempFolder()
    const path = folder.path('locks.db')
    const log = folder.path('fences.log')
    const workers = Array.from(
      { length: 3 },
      () => new Worker(CHILD, { workerData: ['hammer', path, 'hot', log, '30000'] }),
    )
    const ended = workers.map((worker) => new Promise<number>((resolve) => worker.once('exit', resolve)))
    await Promise.all(workers.map((worker) => new Promise((resolve) => worker.once('message', resolve))))
    for (const worker of workers) worker.postMessage('stop')
    expect(await Promise.all(ended)).toEqual([0, 0, 0])
    const fences = fencesIn(log)
    for (const [index, fence] of fences.entries()) expect(fence).toBeGreaterThan(fences[index - 1] ?? 0)
  })
})
