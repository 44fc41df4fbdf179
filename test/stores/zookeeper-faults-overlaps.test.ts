import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { eventually, inTime, now, pass, settled } from '../../src/testing/conformance/checks.js'
import { conflictsIn, type Held } from '../faults/history.js'
import { serving } from '../faults/zookeeper.js'
import { describeOn } from '../servers/availability.js'
import { type ProxyMode, TcpProxy } from '../servers/proxy.js'
import { startZooKeeperEnsemble, type ZooKeeperEnsemble } from '../servers/zookeeper.js'

const TAKER = join(import.meta.dirname, '../faults/zookeeper-taker.mjs')
/** `npm run test:faults` has many more. */
const GRANTS = Number(process.env['HOLDFAST_FAULT_GRANTS'] ?? 200)
const LIMIT_MS = 120_000 + GRANTS * 30
const [PROCESSES, LOCKS, SESSION_MS] = [3, 64, 4000]
/** Around the leases, and below the session: what is asked for lapses while the session lives on. */
const [SHORTEST_FAULT_MS, LONGEST_FAULT_MS] = [300, 2500]
/** Until then a new connection is refused. Long enough for a client to ask again. */
const LONGEST_GAP_MS = 300
const HEALTHY_MS = 1500

/** A process that takes locks, and its own ways to the servers. */
interface Taker {
  readonly child: ChildProcess
  readonly ways: readonly TcpProxy[]
}

describeOn('zookeeper', 'holds of many processes at ZooKeeper', () => {
  const running: { stop(): Promise<void> }[] = []
  const takers: Taker[] = []
  afterEach(async () => {
    for (const { child } of takers.splice(0)) child.kill('SIGKILL')
    for (const each of running.splice(0)) await each.stop()
  })

  const start = async (
    ensemble: ZooKeeperEnsemble,
    onHeld: (holds: readonly Held[]) => void,
  ): Promise<Taker> => {
    const ways = await Promise.all(ensemble.members.map(({ port }) => TcpProxy.start(port)))
    running.unshift(...ways)
    const address = ways.map(({ port }) => `127.0.0.1:${port}`).join(',')
    const url = `zookeeper://${address}?sessionTimeout=${SESSION_MS}ms&tick=200ms`
    const child = fork(TAKER, [url, String(LOCKS)])
    child.on('message', onHeld)
    return { child, ways }
  }

  it('no two are valid at one moment, while servers freeze and connections break', {
    timeout: LIMIT_MS,
  }, async () => {
    const ensemble = await startZooKeeperEnsemble()
    running.push(ensemble)
    const held: Held[] = []
    const children = () => takers.map(({ child }) => child)
    for (let count = 0; count < PROCESSES; count++)
      takers.push(await start(ensemble, (holds) => held.push(...holds)))
    const startedAt = now()
    const faults = await disturb(ensemble, takers, () => held.length >= GRANTS || children().some(isGone))
    for (const child of children()) if (!isGone(child)) child.send('end')
    // A lock that nobody gets any more keeps them from ending: what was seen until then is judged first.
    const ending = await settled(inTime('their end', Promise.all(children().map(ended)), 60_000))
    const conflicts = conflictsIn(held)
    const tookS = Math.round((now() - startedAt) / 1000)
    console.log(`${held.length} grants, ${conflicts.overlaps.length} overlaps, ${faults} faults, ${tookS} s`)
    expect(conflicts).toEqual({ overlaps: [], lowered: [] })
    if ('error' in ending) throw ending.error
    expect(children().map(({ exitCode }) => exitCode)).toEqual(children().map(() => 0))
  })
})

/** One fault after the other, with time to work in between. How many there were. */
async function disturb(
  ensemble: ZooKeeperEnsemble,
  takers: readonly Taker[],
  isEnough: () => boolean,
): Promise<number> {
  const set = (ways: readonly TcpProxy[], mode: ProxyMode): void => {
    for (const way of ways) way.mode = mode
  }
  /** What is on its way is lost with the connection, and for a moment there is no other one. */
  const lose = async (ways: readonly TcpProxy[], mode: 'stall' | 'lose replies'): Promise<void> => {
    set(ways, mode)
    await pass(faultMs())
    set(ways, 'refuse')
    await pass(Math.random() * LONGEST_GAP_MS)
    set(ways, 'pass')
  }
  const freeze = async (): Promise<void> => {
    const member = any(ensemble.members)
    member.pause()
    await pass(faultMs())
    member.resume()
    await serving(ensemble, 3)
  }
  const all = takers.flatMap(({ ways }) => ways)
  const faults: readonly (() => Promise<unknown>)[] = [
    freeze,
    async () => {
      for (const way of all) way.cut()
    },
    () => lose(all, 'stall'),
    () => lose(all, 'lose replies'),
    () => Promise.all(takers.map(({ ways }) => lose(ways, 'stall'))),
    () => Promise.all(takers.map(({ ways }) => lose(ways, 'lose replies'))),
    () => lose(any(takers).ways, 'stall'),
    () => lose(any(takers).ways, 'stall'),
  ]
  let count = 0
  for (; !isEnough(); count++) {
    await any(faults)()
    const until = now() + HEALTHY_MS
    await eventually('time to work', () => isEnough() || now() > until)
  }
  return count
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
