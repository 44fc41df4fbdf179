import { afterEach, expect, it } from 'vitest'
import { now, pass } from '../../src/testing/conformance/checks.js'
import { packetLossAvailability } from '../servers/packet-loss.js'
import type { ProxyMode, TcpProxy } from '../servers/proxy.js'
import { describeOnQuorum, type MemberKind, type QuorumServers, startQuorum } from '../servers/quorum.js'
import { WallClock } from '../servers/wall-clock.js'
import { found, storeAt } from '../stores/quorum/conformance.js'
import { lateSince, Takers } from './quorum-takers.js'
import { ROUNDS } from './runs.js'

/** `npm run test:faults` has many more. */
const GRANTS = Number(process.env['HOLDFAST_FAULT_QUORUM_GRANTS'] ?? 100)
const LIMIT_MS = 120_000 + ROUNDS * 60_000 + GRANTS * 60
const isLong = ROUNDS > 1

const LEASE_MS = 2000
/** Short, as a member that has lost its data is out for so long. */
const LONGEST_LEASE_MS = 3000
/** With the time to claim anew it is far below a lease, also on a busy machine. */
const MEMBER_TIMEOUT_MS = 600
const [PROCESSES, QUICK_LOCKS, LONG_LOCKS] = [3, 8, 2]
/** Longer than a lease: what a lost member had granted is over before it is back. */
const OUTAGE_MS = 1.2 * LEASE_MS
const RECOVERY_MS = 2000
const [SHORTEST_FAULT_MS, LONGEST_FAULT_MS] = [200, 1.2 * LEASE_MS]
const HEALTHY_MS = 500
/** An hour, and half an hour: more than any lease. */
const SKEWS_S = [3600, 0, -1800, 7, -7]

const noLoss = packetLossAvailability()

interface FaultRunOptions {
  /** The clocks of the members are far apart in the run with all faults. */
  isSkewed?: boolean
  /** Of the runs below, those that are part of the suite. The others are for `npm run test:faults`. */
  inSuite: readonly Run[]
}

type Run = 'minority' | 'majority' | 'all' | 'clock'

/** What happens to the members of a minority, and how it is undone. */
type Failure = (servers: QuorumServers, members: readonly number[]) => Promise<() => Promise<unknown>>

const DATA_LOSS = 'a restart without data'
/** The members take part again a while after their wait is over. */
const REJOINED_MS = LONGEST_LEASE_MS + 1500

const MINORITY_FAILURES: Readonly<Record<string, Failure>> = {
  'kill -9': async (servers, members) => {
    for (const member of members) await servers.kill(member)
    return () => Promise.all(members.map((member) => servers.restart(member, { keepData: true })))
  },
  'a pause': async (servers, members) => {
    for (const member of members) servers.pause(member)
    return async () => {
      for (const member of members) servers.resume(member)
    }
  },
  ...(noLoss === null && {
    'all packets lost': async (servers: QuorumServers, members: readonly number[]) => {
      const cuts = await Promise.all(members.map((member) => servers.cutOff(member)))
      return async () => {
        for (const cut of cuts) cut.heal()
      }
    },
  }),
  [DATA_LOSS]: async (servers, members) => {
    await Promise.all(members.map((member) => servers.restart(member, { keepData: false })))
    return async () => {}
  },
}

/** The fault runs on one set of members, with processes that take locks all the time. */
export function describeFaults(
  title: string,
  kinds: readonly MemberKind[],
  { isSkewed = false, inSuite }: FaultRunOptions,
): void {
  const declare = (run: Run, text: string, body: () => Promise<void>): void => {
    const isPart = isLong || inSuite.includes(run)
    it.skipIf(!isPart)(isPart ? text : `${text} (only in npm run test:faults)`, body, LIMIT_MS)
  }
  describeOnQuorum(kinds, title, () => {
    const running: { stop(): Promise<void> }[] = []
    const clocks: WallClock[] = []
    afterEach(async () => {
      for (const each of running.splice(0).reverse()) await each.stop()
      for (const clock of clocks.splice(0)) clock.dispose()
    })

    async function begin(
      hasWays: boolean,
      skewsS: readonly number[] = [],
    ): Promise<{ servers: QuorumServers; takers: Takers }> {
      const set = skewsS.slice(0, kinds.length).map((offsetS) => {
        const clock = new WallClock()
        clock.set(offsetS)
        clocks.push(clock)
        return clock
      })
      // Where clocks cannot be moved, they run together.
      const own = set.every(({ obstacle }) => obstacle === null) ? set : []
      const servers = await startQuorum(kinds, { persistence: 'always', clocks: own })
      running.push(servers)
      const options = { longestLease: LONGEST_LEASE_MS, memberTimeout: MEMBER_TIMEOUT_MS }
      await found(storeAt(servers.urls, options))
      const task = { options, quickLocks: QUICK_LOCKS, longLocks: LONG_LOCKS, leaseMs: LEASE_MS }
      const takers = new Takers(servers, task, hasWays)
      running.push(takers)
      for (let count = 0; count < PROCESSES; count++) await takers.add()
      await takers.grantedSince(now())
      return { servers, takers }
    }

    declare('minority', 'a minority fails: nobody waits for as long as a lease', async () => {
      const { servers, takers } = await begin(false)
      const gaps: { failure: string; gapMs: number; boundMs: number; backMs: number }[] = []
      for (let round = 0; round < ROUNDS; round++)
        for (const [failure, strike] of Object.entries(MINORITY_FAILURES)) {
          const lateMs = lateSince(takers.lateness)
          const from = now()
          const heal = await strike(servers, someMembers(servers, servers.minority, gaps.length))
          await pass(OUTAGE_MS)
          const to = now()
          // The gap that the failure leads to may end after it was healed.
          await heal()
          const healedAt = now()
          const backMs = (await takers.grantedSince(healedAt)) - healedAt
          await pass(100)
          const gapMs = takers.longestGapMs(from, to)
          gaps.push({ failure, gapMs, boundMs: LEASE_MS + lateMs(), backMs })
          console.log(`${failure}: gap ${gapMs.toFixed(0)} ms, ${backMs.toFixed(0)} ms after it was healed`)
          if (failure === DATA_LOSS) await pass(REJOINED_MS)
        }
      await judged(takers)
      expect(gaps.filter(({ gapMs, boundMs }) => gapMs >= boundMs)).toEqual([])
      expect(gaps.filter(({ backMs, boundMs }) => backMs > RECOVERY_MS + boundMs - LEASE_MS)).toEqual([])
    })

    declare('majority', 'a majority fails: all go on when it is back', async () => {
      const { servers, takers } = await begin(false)
      const late: object[] = []
      for (let round = 0; round < ROUNDS; round++)
        for (const failure of ['kill -9', 'a pause'] as const) {
          const heal = await MINORITY_FAILURES[failure]?.(
            servers,
            someMembers(servers, servers.minority + 1, round),
          )
          await pass(OUTAGE_MS)
          const lateMs = lateSince(takers.lateness)
          await heal?.()
          const healedAt = now()
          const backMs = (await takers.grantedSince(healedAt)) - healedAt
          console.log(`${failure} of a majority: ${backMs.toFixed(0)} ms after it was healed`)
          if (backMs > RECOVERY_MS + lateMs()) late.push({ failure, backMs })
        }
      await judged(takers)
      expect(late).toEqual([])
    })

    declare('all', `all kinds of faults${isSkewed ? ', clocks far apart' : ''}`, async () => {
      const { servers, takers } = await begin(true, isSkewed ? SKEWS_S : [])
      const startedAt = now()
      let faults = 0
      do
        for (const fault of faultsOf(servers, takers)) {
          await fault()
          await pass(HEALTHY_MS)
          faults++
        }
      while (takers.grants < GRANTS && !takers.hasDied)
      console.log(`${faults} faults in ${Math.round((now() - startedAt) / 1000)} s`)
      await takers.grantedSince(now())
      await judged(takers)
    })

    declare('clock', 'the clock of a member jumps: fences go on upwards', async () => {
      const { servers, takers } = await begin(
        false,
        SKEWS_S.map(() => 0),
      )
      for (let round = 0; round < ROUNDS; round++)
        for (const offsetS of [60, 0, -60, 0]) {
          const clock = clocks[round % servers.size]
          clock?.set(offsetS)
          await takers.grantedSince(now())
          await pass(HEALTHY_MS)
        }
      await judged(takers, { mayOverlap: true })
    })
  })
}

/** `mayOverlap`: a lease is a time, and a clock that jumps ends it early. A fence is not. */
async function judged(takers: Takers, { mayOverlap } = { mayOverlap: false }): Promise<void> {
  await takers.end()
  console.log(takers.summary)
  const { overlaps, wronglyRefused, ...faults } = takers.faults()
  for (const conflict of [...overlaps, ...faults.lowered].slice(0, 5)) console.log(takers.story(conflict))
  expect(faults).toEqual({ lowered: [], lostUpdates: [], deaths: [] })
  // Of two that overlap, the earlier one is refused.
  if (!mayOverlap) expect({ overlaps, wronglyRefused }).toEqual({ overlaps: [], wronglyRefused: [] })
}

/** Some of those that have a server, others each time. */
function someMembers(servers: QuorumServers, count: number, turn: number): number[] {
  const able = servers.kinds.flatMap((kind, member) => (kind === 'sqlite' ? [] : [member]))
  return Array.from({ length: count }, (_, index) => able[(turn + index) % able.length] ?? 0)
}

/** Each kind of fault once, in any order; each has its end. */
function faultsOf(servers: QuorumServers, takers: Takers): (() => Promise<void>)[] {
  const fail = ([name, failure]: [string, Failure]) => {
    return async (): Promise<void> => {
      // Where a majority has lost its data, only the clocks keep the fences from falling.
      const most = servers.minority + (name === DATA_LOSS ? 0 : 1)
      const count = 1 + Math.floor(Math.random() * most)
      const members = someMembers(servers, count, Math.floor(Math.random() * servers.size))
      takers.note(`${name} of ${members.join(', ')}`)
      const heal = await failure(servers, members)
      await pass(name === DATA_LOSS ? REJOINED_MS : faultMs())
      await heal()
      takers.note('healed')
    }
  }
  // A client is cut off from some members, and others are not.
  const lose = (mode: ProxyMode) => async (): Promise<void> => {
    takers.note(`some ways: ${mode}`)
    await loseWays(waysOf(takers), mode)
  }
  const faults = [
    ...Object.entries(MINORITY_FAILURES).map(fail),
    lose('stall'),
    lose('lose replies'),
    lose('refuse'),
    async () => {
      takers.note('a client stands still')
      const { child } = any(takers.running)
      child.kill('SIGSTOP')
      // Mostly for longer than a lease: what it holds is over when it goes on.
      await pass(LEASE_MS + Math.random() * LEASE_MS)
      child.kill('SIGCONT')
    },
    async () => {
      takers.note('a client is killed')
      await takers.kill(any(takers.running))
      await takers.add()
    },
  ]
  return faults
    .map((fault) => ({ fault, at: Math.random() }))
    .sort((one, other) => one.at - other.at)
    .map(({ fault }) => fault)
}

/** The ways of some clients to some members. */
function waysOf(takers: Takers): TcpProxy[] {
  return takers.running
    .flatMap(({ proxies }) => proxies)
    .filter((proxy): proxy is TcpProxy => proxy !== null && Math.random() < 0.4)
}

async function loseWays(ways: readonly TcpProxy[], mode: ProxyMode): Promise<void> {
  for (const way of ways) way.mode = mode
  await pass(faultMs())
  // What is on its way is lost, on some of them.
  for (const way of ways) if (Math.random() < 0.5) way.mode = 'refuse'
  for (const way of ways) way.mode = 'pass'
}

function faultMs(): number {
  return SHORTEST_FAULT_MS + Math.random() * (LONGEST_FAULT_MS - SHORTEST_FAULT_MS)
}

function any<T>(items: readonly T[]): T {
  return items[Math.floor(Math.random() * items.length)] as T
}
