import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { eventually, inTime, now, pass } from '../../src/testing/conformance/checks.js'
import { serving } from '../faults/zookeeper.js'
import { describeOn } from '../servers/availability.js'
import { type ProxyMode, TcpProxy } from '../servers/proxy.js'
import { startZooKeeperEnsemble, type ZooKeeperEnsemble } from '../servers/zookeeper.js'

const TAKER = join(import.meta.dirname, '../faults/zookeeper-taker.mjs')
/** `npm run test:faults` has many more. */
const GRANTS = Number(process.env['HOLDFAST_FAULT_GRANTS'] ?? 200)
const LIMIT_MS = 120_000 + GRANTS * 30
const [PROCESSES, LOCKS, SESSION_MS] = [3, 32, 4000]
/** Around the leases, and below the session: what is asked for lapses while the session lives on. */
const [SHORTEST_FAULT_MS, LONGEST_FAULT_MS] = [300, 2500]
const HEALTHY_MS = 2500

/** A lock, the fence of a hold, and from when to when it was surely valid. */
type Held = readonly [lock: number, fence: number, from: number, to: number]

describeOn('zookeeper', 'holds of many processes at ZooKeeper', () => {
  const running: { stop(): Promise<void> }[] = []
  const takers: ChildProcess[] = []
  afterEach(async () => {
    for (const taker of takers.splice(0)) taker.kill('SIGKILL')
    for (const each of running.splice(0)) await each.stop()
  })

  it('no two are valid at one moment, while servers freeze and connections break', {
    timeout: LIMIT_MS,
  }, async () => {
    const ensemble = await startZooKeeperEnsemble()
    running.push(ensemble)
    const ways: TcpProxy[] = []
    for (const { port } of ensemble.members) ways.push(await TcpProxy.start(port))
    running.unshift(...ways)
    const address = ways.map(({ port }) => `127.0.0.1:${port}`).join(',')
    const url = `zookeeper://${address}?sessionTimeout=${SESSION_MS}ms&tick=200ms`
    const held: Held[] = []
    for (let count = 0; count < PROCESSES; count++) {
      const taker = fork(TAKER, [url, String(LOCKS)])
      taker.on('message', (holds: Held[]) => held.push(...holds))
      takers.push(taker)
    }
    const startedAt = now()
    const faults = await disturb(ensemble, ways, () => held.length >= GRANTS || takers.some(isGone))
    for (const taker of takers) if (!isGone(taker)) taker.send('end')
    await inTime('their end', Promise.all(takers.map(ended)), 60_000)
    expect(takers.map(({ exitCode }) => exitCode)).toEqual(takers.map(() => 0))
    const conflicts = conflictsIn(held)
    const tookS = Math.round((now() - startedAt) / 1000)
    console.log(`${held.length} grants, ${conflicts.overlaps.length} overlaps, ${faults} faults, ${tookS} s`)
    expect(conflicts).toEqual({ overlaps: [], lowered: [] })
  })
})

/** One fault after the other, with time to work in between. How many there were. */
async function disturb(
  ensemble: ZooKeeperEnsemble,
  ways: readonly TcpProxy[],
  isEnough: () => boolean,
): Promise<number> {
  const each = (mode: ProxyMode): void => {
    for (const way of ways) way.mode = mode
  }
  const faults: (() => Promise<void>)[] = [
    async () => {
      const member = any(ensemble.members)
      member.pause()
      await pass(faultMs())
      member.resume()
      await serving(ensemble, 3)
    },
    // What is on its way is lost with the connection.
    async () => {
      each('stall')
      await pass(faultMs())
      each('refuse')
      await pass(Math.random() * 200)
    },
    async () => {
      each('lose replies')
      await pass(faultMs())
      each('refuse')
    },
    async () => {
      for (const way of ways) way.cut()
    },
  ]
  let count = 0
  for (; !isEnough(); count++) {
    await any(faults)()
    each('pass')
    const until = now() + HEALTHY_MS
    await eventually('time to work', () => isEnough() || now() > until)
  }
  return count
}

/** By true time, and by fence. */
function conflictsIn(held: readonly Held[]): { overlaps: Held[][]; lowered: Held[][] } {
  const overlaps: Held[][] = []
  const lowered: Held[][] = []
  const last = new Map<number, Held>()
  for (const later of held.toSorted((one, other) => one[2] - other[2])) {
    const [lock, fence, from, to] = later
    const earlier = last.get(lock)
    if (earlier && from <= earlier[3]) overlaps.push([earlier, later])
    if (earlier && fence <= earlier[1]) lowered.push([earlier, later])
    if (!earlier || to > earlier[3]) last.set(lock, later)
  }
  return { overlaps, lowered }
}

function faultMs(): number {
  return SHORTEST_FAULT_MS + Math.random() * (LONGEST_FAULT_MS - SHORTEST_FAULT_MS)
}

function any<T>(items: readonly T[]): T {
  return items[Math.floor(Math.random() * items.length)] as T
}

function isGone({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}

async function ended(child: ChildProcess): Promise<void> {
  if (!isGone(child)) await once(child, 'exit')
}
