import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { eventually, now, pass } from '../src/testing/conformance/checks.js'
import { randomStream } from '../src/testing/virtual/random.js'
import { Lateness } from '../test/faults/lateness.js'
import { Crowd } from './crowd.js'
import { excused, type Loss } from './excused.js'
import { countViolations, judge } from './judged.js'
import { choiceFrom, type Heal, type Nemesis, shuffled } from './nemesis.js'
import { loopsOf, type ProvedStore } from './store.js'
import { nowUs } from './time.js'
import { measured, type Window, type WindowResult } from './windows.js'

export interface RunOptions {
  readonly seed: number
  /** Begins no fault after this time. */
  readonly minutes: number
  /** Ends when so many grants have been made, if that is sooner. */
  readonly grants?: number
  /** Where the history goes. */
  readonly file: string
}

export interface RunResult {
  readonly seed: number
  readonly seconds: number
  readonly grants: number
  readonly losses: number
  readonly refused: number
  /** Calls that failed, as they may while there is a fault. */
  readonly failures: number
  /** Holds that a fault may have ended unnoticed, as the store's page says. */
  readonly excused: number
  /** What our own check finds where nothing is excused. Runs that were kept early do not have it. */
  readonly excusedViolations?: number
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
/** What is allowed beyond the lease. */
const RECOVERY_MS = 1000
/** What was granted before a loss may reach its holder so much later. */
const ON_ITS_WAY_US = 1_000_000
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
  const violations = [...crowd.odd, ...campaign.stranded]
  const all = campaign.losses.length > 0 ? countViolations(options.file) : 0
  const clipped = excused(options.file, campaign.losses)
  const judged = judge(options.file)
  violations.push(...judged.violations)
  return {
    seed: options.seed,
    seconds,
    grants: crowd.grantsAt.length,
    losses: crowd.lossesAt.length,
    refused: crowd.refusalsAt.length,
    failures: crowd.failures,
    excused: clipped,
    excusedViolations: Math.max(0, all - judged.violations.length),
    excuses: running.nemeses.flatMap(({ name: fault, excuse }) =>
      excuse === undefined ? [] : [{ fault, excuse }],
    ),
    windows: measured(campaign.windows, crowd),
    violations,
    porcupine: judged.porcupine,
  }
}

interface Begun {
  readonly fault: Nemesis
  readonly heal: Heal
  readonly begunAt: number
}

class Campaign {
  readonly windows: Window[] = []
  readonly losses: Loss[] = []
  readonly stranded: string[] = []
  readonly lateness = new Lateness()
  readonly #crowd: Crowd
  readonly #options: RunOptions
  readonly #random: () => number
  readonly #startedAt = now()

  constructor(crowd: Crowd, options: RunOptions) {
    this.#crowd = crowd
    this.#options = options
    this.#random = randomStream(options.seed, 'nemeses')
  }

  /** Each fault alone, then so many pairs, and again. */
  async run(nemeses: readonly Nemesis[]): Promise<void> {
    while (!this.#isOver()) {
      const alone = shuffled(nemeses, this.#random).map((nemesis) => [nemesis])
      for (const faults of [...alone, ...this.#pairs(nemeses)]) {
        if (this.#isOver()) return
        await this.#window(faults)
      }
    }
  }

  #isOver(): boolean {
    const { minutes, grants = Number.POSITIVE_INFINITY } = this.#options
    const isLate = now() - this.#startedAt > minutes * 60_000
    return isLate || this.#crowd.grantsAt.length >= grants || this.stranded.length > 0
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
    const from = nowUs()
    const begun = await this.#begin(faults)
    await pass(Math.max(...faults.map(({ lastsMs }) => lastsMs)))
    for (const { heal } of begun) await heal()
    for (const { fault, begunAt } of begun)
      if (fault.excuse !== undefined)
        this.losses.push({ from, to: (fault.isLossy ? nowUs() : begunAt) + ON_ITS_WAY_US })
    const lateMs = this.lateness.totalMs
    this.#crowd.healed()
    const to = nowUs()
    this.#crowd.write({ type: 'fault', name, from, to })
    await this.#recovered(name)
    this.windows.push({
      faults: faults.map((fault) => fault.name),
      ...{ from, to, recoveredAt: this.#crowd.recoveredAt },
      boundMs: Math.round(this.#crowd.leaseMs + RECOVERY_MS + this.lateness.totalMs - lateMs),
    })
  }

  /** In the order in which they have to be healed. */
  async #begin(faults: readonly Nemesis[]): Promise<Begun[]> {
    const begun: Begun[] = []
    for (const fault of faults) {
      const heal = await fault.begin(this.#crowd, choiceFrom(this.#random))
      begun.push({ fault, heal, begunAt: nowUs() })
    }
    const place = ({ fault }: Begun): number => HEALING_ORDER.indexOf(fault.hits)
    return begun.sort((one, other) => place(one) - place(other))
  }

  async #healthy(): Promise<void> {
    const wanted = this.#crowd.grantsAt.length + HEALTHY_GRANTS
    await eventually('healthy grants', () => this.#crowd.grantsAt.length >= wanted, STRANDED_MS)
  }

  async #recovered(name: string): Promise<void> {
    await eventually('recovery', () => this.#crowd.stranded.length === 0, STRANDED_MS).catch(() => {
      for (const who of this.#crowd.stranded) this.stranded.push(`Stranded after ${name}: ${who}`)
    })
  }
}
