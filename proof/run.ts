import { mkdirSync } from 'node:fs'
import { cpus } from 'node:os'
import { dirname } from 'node:path'
import { eventually, now, pass } from '../src/testing/conformance/checks.js'
import { randomStream } from '../src/testing/virtual/random.js'
import { Lateness } from '../test/faults/lateness.js'
import { Crowd } from './crowd.js'
import { excused, type Loss } from './excused.js'
import { judge } from './judged.js'
import { calm, choiceFrom, type Heal, type Nemesis, shuffled } from './nemesis.js'
import { loopsOf, type ProvedStore } from './store.js'
import { nowUs } from './time.js'
import { measured, unexplained, type Window, type WindowResult } from './windows.js'

export interface RunOptions {
  readonly seed: number
  /** Begins no fault after this time. */
  readonly minutes: number
  /**
   * Ends with the round that has brought so many grants under faults, if that is sooner. In a round,
   * each fault is made alone, and then in a pair.
   */
  readonly grants?: number
  /** Where the history goes. */
  readonly file: string
}

export interface RunResult {
  readonly seed: number
  /** What it ran on. */
  readonly setting?: string
  readonly seconds: number
  readonly grants: number
  readonly losses: number
  readonly refused: number
  /** How often a probe was told that the store is down. */
  readonly unavailable: number
  /** Calls that failed, as they may while there is a fault. */
  readonly failures: number
  /** Holds that a fault may have ended unnoticed, as the store's page says. */
  readonly excused: number
  /** How many violations of our own check that excuses, and the longest overlap of two holds. */
  readonly excusedViolations: number
  readonly excusedMs?: number
  /** The faults of which it says so. */
  readonly excuses: readonly { readonly fault: string; readonly excuse: string }[]
  readonly windows: readonly WindowResult[]
  /** What must not be. */
  readonly violations: readonly string[]
  /** How many operations Porcupine has judged beside our own check; null: it was not there. */
  readonly porcupine: number | null
}

/** Grants between two faults. */
const HEALTHY_GRANTS = 30
const STRANDED_MS = 60_000
/** At the end: each client may hold a long lock for three leases, one after the other. */
const LONG_STRANDED_MS = 180_000
/** What is allowed beyond the lease. */
export const RECOVERY_MS = 1000
/** Clients are healed last: they need what the other fault took away. */
const HEALING_ORDER = ['network', 'disk', 'servers', 'clocks', 'clients']

/** A crowd on the store, one fault window after the other. Then the history is judged. */
export async function prove(store: ProvedStore, options: RunOptions): Promise<RunResult> {
  mkdirSync(dirname(options.file), { recursive: true })
  const running = await store.start()
  const { leaseMs, askedLeaseMs = leaseMs, workers = 5, clients = 1 } = store
  const crowd = new Crowd(options.file, {
    ...{ workers, clients, leaseMs, askedLeaseMs, loops: loopsOf(store) },
    wayOf: (worker) => running.wayOf(worker),
  })
  const campaign = new Campaign(crowd, options)
  const from = now()
  try {
    await crowd.start()
    await campaign.run(running.nemeses)
    await crowd.end()
  } finally {
    campaign.lateness.stop()
    await crowd.stop()
    await running.stop()
  }
  const seconds = Math.round((now() - from) / 1000)
  const clipped = excused(options.file, campaign.losses, leaseMs)
  const judged = judge(clipped.judged)
  const ran = new Set(campaign.windows.flatMap(({ faults }) => faults))
  return {
    seed: options.seed,
    setting: settingOf(crowd.server),
    seconds,
    grants: crowd.grantsAt.length,
    losses: crowd.losses.length,
    refused: crowd.refusalsAt.length,
    unavailable: crowd.unavailable.length,
    failures: crowd.failures.length,
    excused: clipped.count,
    excusedViolations: clipped.violations,
    excusedMs: clipped.overlapMs,
    excuses: [...ran].flatMap(({ name: fault, excuse }) => (excuse === undefined ? [] : [{ fault, excuse }])),
    windows: measured(campaign.windows, crowd),
    violations: [
      ...crowd.odd,
      ...campaign.stranded,
      ...campaign.idle,
      ...unexplained(campaign.windows, crowd, leaseMs),
      ...judged.violations,
    ],
    porcupine: judged.porcupine,
  }
}

function settingOf(servers: string): string {
  const cores = cpus()
  return [`Node ${process.versions.node}`, servers, `${cores.length} cores of ${cores[0]?.model}`]
    .filter(Boolean)
    .join(', ')
}

interface Begun {
  readonly fault: Nemesis
  readonly heal: Heal
  readonly from: number
  readonly begunAt: number
}

class Campaign {
  readonly windows: Window[] = []
  readonly losses: Loss[] = []
  readonly stranded: string[] = []
  /** Faults that did not take place. */
  readonly idle: string[] = []
  readonly lateness = new Lateness()
  readonly #crowd: Crowd
  readonly #options: RunOptions
  readonly #random: () => number
  #startedAt = 0
  #grantsUnderFaults = 0

  constructor(crowd: Crowd, options: RunOptions) {
    this.#crowd = crowd
    this.#options = options
    this.#random = randomStream(options.seed, 'nemeses')
  }

  /** In the end, everybody must be granted the locks that are held for long, too. */
  async run(nemeses: readonly Nemesis[]): Promise<void> {
    this.#startedAt = now()
    await this.#windows(nemeses)
    if (this.stranded.length > 0) return
    this.#crowd.healed({ isLongToo: true })
    await this.#recovered('the last fault, with the long locks', LONG_STRANDED_MS)
  }

  /** Each fault alone, then so many pairs, and again. */
  async #windows(nemeses: readonly Nemesis[]): Promise<void> {
    const { grants = Number.POSITIVE_INFINITY } = this.#options
    while (this.#grantsUnderFaults < grants) {
      const alone = shuffled([calm(this.#crowd.leaseMs), ...nemeses], this.#random)
      for (const faults of [...alone.map((nemesis) => [nemesis]), ...this.#pairs(nemeses)]) {
        if (this.#isOver()) return
        await this.#window(faults)
      }
    }
  }

  #isOver(): boolean {
    return now() - this.#startedAt > this.#options.minutes * 60_000 || this.stranded.length > 0
  }

  #pairs(nemeses: readonly Nemesis[]): Nemesis[][] {
    return shuffled(nemeses, this.#random).flatMap((first) => {
      const others = nemeses.filter(({ hits }) => hits !== first.hits)
      return others.length === 0 ? [] : [[first, choiceFrom(this.#random).one(others)]]
    })
  }

  async #window(faults: readonly Nemesis[]): Promise<void> {
    await this.#healthy()
    const name = faults.map((fault) => fault.name).join(' + ')
    console.log(`${Math.round((now() - this.#startedAt) / 1000)} s: ${name}`)
    if (faults.some(({ endsHolds }) => endsHolds)) await this.#crowd.untilFresh()
    const grantsBefore = this.#crowd.grantsAt.length
    const from = nowUs()
    const begun = await this.#begin(faults)
    await pass(Math.max(...faults.map(({ lastsMs }) => lastsMs)))
    for (const each of begun) {
      const count = await each.heal()
      this.#excuse(each)
      // Of two, one may leave nothing to do to the other.
      if (count === 0 && faults.length === 1) this.idle.push(`Nothing happened: ${each.fault.name}`)
    }
    this.#crowd.healed()
    const to = nowUs()
    const isFault = faults.some(({ hits }) => hits !== 'nothing')
    if (isFault) this.#crowd.write({ type: 'fault', name, from, to })
    const lateMs = await this.#recovered(name)
    const { leaseMs, recoveredAt, servedAt } = this.#crowd
    const boundMs = Math.round(leaseMs + RECOVERY_MS + lateMs)
    this.windows.push({ faults, from, to, recoveredAt, servedAt, boundMs })
    const inWindow = this.#crowd.grantsAt.slice(grantsBefore).filter((at) => at <= recoveredAt)
    if (isFault) this.#grantsUnderFaults += inWindow.length
  }

  /** Right after it was healed. */
  #excuse({ fault, from, begunAt }: Begun): void {
    if (fault.excuse !== undefined) this.losses.push({ from, to: fault.isLossy ? nowUs() : begunAt })
  }

  /**
   * In the order in which they have to be healed. They begin in the opposite one: who looks for the
   * leader needs the network.
   */
  async #begin(faults: readonly Nemesis[]): Promise<Begun[]> {
    const place = ({ hits }: Nemesis): number => HEALING_ORDER.indexOf(hits)
    const begun: Begun[] = []
    for (const fault of faults.toSorted((one, other) => place(other) - place(one))) {
      const from = nowUs()
      const heal = await fault.begin(this.#crowd, choiceFrom(this.#random))
      begun.unshift({ fault, heal, from, begunAt: nowUs() })
    }
    return begun
  }

  async #healthy(): Promise<void> {
    const wanted = this.#crowd.grantsAt.length + HEALTHY_GRANTS
    await eventually('healthy grants', () => this.#crowd.grantsAt.length >= wanted, STRANDED_MS)
  }

  /** How long this process stood still until each client was granted each lock. */
  async #recovered(name: string, limitMs = STRANDED_MS): Promise<number> {
    const before = this.lateness.totalMs
    let lateMs = 0
    const isServed = (): boolean => {
      if (!this.#crowd.hasRecovered) lateMs = this.lateness.totalMs - before
      return this.#crowd.stranded.length === 0
    }
    await eventually('recovery', isServed, limitMs).catch(() => {
      for (const who of this.#crowd.stranded) this.stranded.push(`Stranded after ${name}: ${who}`)
    })
    return lateMs
  }
}
