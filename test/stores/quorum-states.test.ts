import { expect, it } from 'vitest'
import { HoldfastError } from '../../src/base/errors.js'
import type { Connection, StateValue } from '../../src/contract/store.js'
import { MemberServers } from '../../src/testing/simulation/members/backend.js'
import { type VirtualProcess, VirtualWorld } from '../../src/testing/virtual-env.js'

/** HOLDFAST_SEEDS=5000 runs more of them; HOLDFAST_SEED=42 starts elsewhere. */
const SEEDS = Number(process.env['HOLDFAST_SEEDS'] ?? 20)
const FIRST = Number(process.env['HOLDFAST_SEED'] ?? 1)
const FAULTY_MS = 8_000
const KEY = 'list'

/**
 * Several processes append to one list by compare-and-set, while members fail and restart, with
 * their data. Whatever a call shows must begin with all that was known before the call.
 */
class ListWorld {
  readonly #world: VirtualWorld
  readonly #servers: MemberServers
  readonly #random: () => number
  readonly #processes: VirtualProcess[] = []
  /** The longest list that anybody has seen. */
  #known: readonly string[] = []
  readonly #acknowledged: string[] = []
  #appended = 0
  #isCalm = false
  appends = 0
  reads = 0
  failures = 0

  constructor(seed: number) {
    this.#world = new VirtualWorld({ seed })
    this.#random = this.#world.stream('faults')
    this.#servers = new MemberServers({
      world: this.#world,
      random: this.#random,
      isMixed: true,
      planted: {},
      members: seed % 2 === 0 ? 3 : 5,
      longestLeaseMs: 500,
      skewMs: 3_000,
      kept: ['all'],
      isSplit: seed % 3 === 0,
      disturbedAtOnce: 2,
      latencyMs: [0.2, 3],
    })
  }

  async run(): Promise<void> {
    const tasks = ['p1', 'p2', 'p3', 'reader1', 'reader2'].map((name) => this.#process(name))
    this.#misbehave()
    await this.#world.run(FAULTY_MS)
    this.#isCalm = true
    this.#servers.heal()
    for (const process of this.#processes) process.resume()
    await this.#world.until(Promise.all(tasks), 120_000)
    for (const id of this.#acknowledged) expect(this.#known.filter((each) => each === id)).toEqual([id])
  }

  #misbehave(): void {
    if (this.#isCalm) return
    if (this.#random() < 0.1) this.#fault()
    this.#world.after(20, () => this.#misbehave())
  }

  #fault(): void {
    const process = this.#processes[Math.floor(this.#random() * this.#processes.length)]
    const kind = this.#random()
    const forMs = this.#random() * 1000
    if (!process || kind < 0.4) this.#servers.disturb(forMs)
    else if (kind < 0.6) this.#servers.cutFor(process, forMs)
    else if (kind < 0.7) {
      process.pause()
      this.#world.after(forMs, () => process.resume())
    } else this.#servers.changeWeather()
  }

  async #process(name: string): Promise<void> {
    const process = this.#world.env({ name })
    this.#processes.push(process)
    const connection = this.#servers.from(process).connect({ id: name, space: 's', push: () => {} })
    while (!this.#isCalm) {
      await this.#append(connection, process).catch((error: unknown) => {
        if (!(error instanceof HoldfastError)) throw error
        this.failures++
      })
      await new Promise<void>((resolve) => {
        process.timer(process.random() * 30, resolve, { keepAlive: true })
      })
    }
    await this.#readLast(connection, process)
    await connection.close()
  }

  async #append(connection: Connection, process: VirtualProcess): Promise<void> {
    const state = await this.#watched(() => connection.read(KEY, false))
    this.reads++
    if (process.name.startsWith('reader')) return
    const id = `${process.name}-${++this.#appended}`
    const value = JSON.stringify([...listOf(state), id])
    const change = { key: KEY, expect: state?.version ?? null, value, retentionMs: null }
    let isWritten = false
    await this.#watched(async () => {
      const outcome = await connection.write(change)
      isWritten = outcome.written
      return outcome.current
    })
    if (!isWritten) return
    this.appends++
    this.#acknowledged.push(id)
  }

  /** Without faults a read has to succeed soon. */
  async #readLast(connection: Connection, process: VirtualProcess): Promise<void> {
    for (;;) {
      try {
        await this.#watched(() => connection.read(KEY, false))
        return
      } catch (error) {
        if (!(error instanceof HoldfastError)) throw error
      }
      await new Promise<void>((resolve) => {
        process.timer(100, resolve, { keepAlive: true })
      })
    }
  }

  async #watched(call: () => Promise<StateValue | null>): Promise<StateValue | null> {
    const before = this.#known
    const state = await call()
    const list = listOf(state)
    expect(list.slice(0, before.length)).toEqual(before)
    if (list.length > this.#known.length) {
      expect(list.slice(0, this.#known.length)).toEqual(this.#known)
      this.#known = list
    } else expect(this.#known.slice(0, list.length)).toEqual(list)
    return state
  }
}

function listOf(state: StateValue | null): string[] {
  return state ? (JSON.parse(state.value) as string[]) : []
}

it(`keeps states in one order over several members, in ${SEEDS} simulated worlds`, {
  timeout: SEEDS * 4000,
}, async () => {
  const sum = { appends: 0, reads: 0, failures: 0 }
  for (let seed = FIRST; seed < FIRST + SEEDS; seed++) {
    const world = new ListWorld(seed)
    await world.run().catch((error: unknown) => {
      throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error })
    })
    for (const name of ['appends', 'reads', 'failures'] as const) sum[name] += world[name]
  }
  console.log(`simulated ${SEEDS} worlds:`, JSON.stringify(sum))
  // A run counts only if enough has happened in it.
  expect(sum.appends).toBeGreaterThan(SEEDS * 20)
  expect(sum.failures).toBeGreaterThan(SEEDS * 5)
})
