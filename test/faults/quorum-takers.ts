import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { type MemoryGuard, memoryGuard } from '../../src/fence/index.js'
import type { QuorumOptions } from '../../src/stores/quorum/index.js'
import { eventually, now } from '../../src/testing/conformance/checks.js'
import type { TcpProxy } from '../servers/proxy.js'
import type { QuorumServers, Ways } from '../servers/quorum.js'
import { conflictsIn, type Held } from './history.js'
import { Lateness } from './lateness.js'

const TAKER = join(import.meta.dirname, 'quorum-taker.mjs')
const END_LIMIT_MS = 60_000

/** What a taker does. */
interface Task {
  readonly urls: readonly string[]
  readonly options: Omit<QuorumOptions, 'env'>
  /** Held for moments, and so granted all the time. */
  readonly quickLocks: number
  /** Held for longer than a lease. */
  readonly longLocks: number
  readonly leaseMs: number
}

type Question = { ask: number; lock: number; fence: number; value: number | null }
type Report = { holds: Held[]; wronglyRefused: object[]; failures: number }

/** A process that takes locks, and its own ways to the members. */
export interface Taker {
  readonly child: ChildProcess
  readonly proxies: readonly (TcpProxy | null)[]
}

/** Numbers that are read and written under fences only. */
class Register {
  /** Writes of holders that had not read the newest number: another one has come between. */
  readonly lostUpdates: object[] = []
  refused = 0
  readonly #guard: MemoryGuard = memoryGuard()
  readonly #values = new Map<number, number>()

  answer({ lock, fence, value }: Question): object {
    try {
      this.#guard.check({ resource: `lock-${lock}`, fence })
    } catch (error) {
      this.refused++
      return { isRefused: true, newest: (error as { newestFence?: number }).newestFence }
    }
    const stored = this.#values.get(lock) ?? 0
    if (value === null) return { isRefused: false, value: stored }
    if (value !== stored + 1) this.lostUpdates.push({ lock, fence, value, stored })
    this.#values.set(lock, value)
    return { isRefused: false }
  }
}

/** Processes that contend for the same locks without a pause, and what they did. */
export class Takers {
  readonly held: Held[] = []
  readonly running: Taker[] = []
  readonly lateness = new Lateness()
  readonly #servers: QuorumServers
  readonly #task: Omit<Task, 'urls'>
  readonly #register = new Register()
  readonly #wronglyRefused: object[] = []
  readonly #deaths: string[] = []
  readonly #ways: Ways[] = []
  readonly #events: { at: number; event: string }[] = []
  /** Calls that failed, as they may while there is a fault. */
  #failures = 0

  readonly #hasWays: boolean

  /** `hasWays`: each reaches the members through proxies of its own. */
  constructor(servers: QuorumServers, task: Omit<Task, 'urls'>, hasWays: boolean) {
    this.#servers = servers
    this.#task = task
    this.#hasWays = hasWays
  }

  async add(): Promise<Taker> {
    const ways = this.#hasWays ? await this.#servers.ways() : null
    if (ways) this.#ways.push(ways)
    const task: Task = { ...this.#task, urls: ways?.urls ?? this.#servers.urls }
    const child = fork(TAKER, [JSON.stringify(task)])
    const taker = { child, proxies: ways?.proxies ?? [] }
    child.on('message', (message: Question | Report) => {
      if ('ask' in message) child.send({ ask: message.ask, ...this.#register.answer(message) }, () => {})
      else this.#note(message)
    })
    child.once('exit', (code, signal) => {
      if (code !== 0 && this.running.includes(taker))
        this.#deaths.push(`a taker ended with ${code ?? signal}`)
    })
    this.running.push(taker)
    return taker
  }

  /** kill -9; its ways stay, as others of the same process would. */
  async kill(taker: Taker): Promise<void> {
    this.running.splice(this.running.indexOf(taker), 1)
    taker.child.kill('SIGKILL')
    await once(taker.child, 'exit')
  }

  /** For the story of a conflict: something happens now. */
  note(event: string): void {
    this.#events.push({ at: now(), event })
  }

  /** What happened before and between two holds that are in conflict. */
  story(conflict: readonly Held[]): string {
    const [from, to] = [conflict[0]?.[2] ?? 0, conflict[1]?.[2] ?? 0]
    const near = this.#events.filter(({ at }) => at > from - 10_000 && at < to + 1000)
    const lines = near.map(({ at, event }) => `  ${Math.round(at - from)} ms: ${event}`)
    return [`${JSON.stringify(conflict)}, counted from the first:`, ...lines].join('\n')
  }

  get grants(): number {
    return this.held.length
  }

  get hasDied(): boolean {
    return this.#deaths.length > 0
  }

  /** Resolves when each quick lock has been granted since `since`, with the moment of the last. */
  async grantedSince(since: number, limitMs = 60_000): Promise<number> {
    const waiting = new Set(Array.from({ length: this.#task.quickLocks }, (_, lock) => lock))
    let [seen, at] = [0, since]
    await eventually(
      'a grant of each lock',
      () => {
        for (; seen < this.held.length; seen++) {
          const [lock, , from] = this.held[seen] as Held
          if (from > since && waiting.delete(lock)) at = Math.max(at, from)
        }
        return waiting.size === 0 || this.hasDied
      },
      limitMs,
    )
    return at
  }

  /** The longest time without a grant of a quick lock that began or went on between these moments. */
  longestGapMs(from: number, to: number): number {
    const gaps = Array.from({ length: this.#task.quickLocks }, (_, lock) => {
      const times = this.held.filter((each) => each[0] === lock).map((each) => each[2])
      times.sort((one, other) => one - other)
      return times.slice(1).map((at, index) => {
        const before = times[index] ?? at
        return before < to && at > from ? at - Math.max(before, from) : 0
      })
    })
    return Math.max(...gaps.flat())
  }

  /** Lets them finish, and ends their processes and ways. */
  async end(): Promise<void> {
    const children = this.running.map(({ child }) => child)
    for (const child of children) {
      child.kill('SIGCONT')
      if (child.connected) child.send('end')
    }
    try {
      await eventually('the end of the takers', () => children.every(isGone), END_LIMIT_MS)
    } finally {
      await this.stop()
    }
  }

  /** Ends them at once. */
  async stop(): Promise<void> {
    for (const { child } of this.running.splice(0)) if (!isGone(child)) child.kill('SIGKILL')
    for (const ways of this.#ways.splice(0)) await ways.stop()
    this.lateness.stop()
  }

  /** What must not be, whatever the fault: empty lists. */
  faults() {
    return {
      ...conflictsIn(this.held),
      lostUpdates: this.#register.lostUpdates,
      wronglyRefused: this.#wronglyRefused,
      deaths: this.#deaths,
    }
  }

  /** One line for the record. */
  get summary(): string {
    const { overlaps, lowered, lostUpdates } = this.faults()
    return [
      `${this.grants} grants`,
      `${this.#failures} failed calls`,
      `${overlaps.length} overlaps`,
      `${lowered.length} lowered fences`,
      `${this.#register.refused} stale writes refused, ${lostUpdates.length} accepted`,
    ].join('; ')
  }

  #note({ holds, wronglyRefused, failures }: Report): void {
    this.held.push(...holds)
    this.#wronglyRefused.push(...wronglyRefused)
    this.#failures += failures
  }
}

function isGone({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}

/** How long this process and its machine stood still between two moments, to be added to a bound. */
export function lateSince(lateness: Lateness): () => number {
  const before = lateness.totalMs
  return () => lateness.totalMs - before
}
