import { type ChildProcess, fork } from 'node:child_process'
import { closeSync, openSync, writeSync } from 'node:fs'
import { constants, getPriority, setPriority } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { entryOf, previousFolder } from '../scripts/previous.mjs'
import { nothing } from '../src/base/nothing.js'
import type { QuorumOptions } from '../src/stores/quorum/index.js'
import { eventually } from '../src/testing/conformance/checks.js'
import type { TcpProxy } from '../test/servers/proxy.js'
import type { AcquireRecord, EndRecord, HistoryRecord, LockKind } from './history.js'
import { type Question, Registers } from './register.js'
import { nowUs } from './time.js'
import type { Moments, Span } from './windows.js'

const ROOT = join(import.meta.dirname, '..')
const WORKER = join(import.meta.dirname, 'worker.mjs')
const END_LIMIT_MS = 30_000
const READY_LIMIT_MS = 60_000
/**
 * How old a fresh hold may be, and how long one is waited for: the long locks often go around
 * together, and others may have them first.
 */
const FRESH_LEASES = 0.5
const FRESH_WITHIN_LEASES = 10
/** Records are written to the file in pieces of about so many characters. */
const PIECE = 2 ** 18

/** How much lower the priority of the workers is than that of the servers. */
const LOWER = 5
const LOWEST = constants.priority.PRIORITY_LOW

/** Of Holdfast. */
export type Version = 'present' | 'previous'

/** A lock that each client takes again and again. */
export interface Loop {
  readonly lock: string
  readonly kind: LockKind
  readonly capacity?: number
  /** Held for longer than a lease at times. The others are granted all the time. */
  readonly isLong?: boolean
  /**
   * How many tasks of each client take it; default: one. Where there are several, a process mostly
   * passes the lock on inside, and only some of the holds use the register.
   */
  readonly tasks?: number
}

/** How a worker reaches the store. */
export interface Way {
  readonly url: string
  /** Of a quorum: its members, in place of the URL. */
  readonly members?: readonly string[]
  readonly quorum?: Omit<QuorumOptions, 'env'>
  readonly env?: Readonly<Record<string, string>>
  /** What is between this worker and the servers; only this worker uses it. */
  readonly proxies?: readonly TcpProxy[]
}

export interface CrowdOptions {
  readonly workers: number
  /** In each worker. */
  readonly clients: number
  readonly loops: readonly Loop[]
  /** How long a hold outlives its process, and what the workers ask for. */
  readonly leaseMs: number
  readonly askedLeaseMs: number
  wayOf(worker: number): Promise<Way>
}

/** Which client and task of the worker was granted. */
type Granted = AcquireRecord & { readonly client: number; readonly task: number }

interface News extends Pick<Moments, 'losses' | 'unavailable' | 'failures'> {
  readonly records: readonly (Granted | EndRecord)[]
  readonly odd: readonly string[]
  /** The holds that are not over, with the last moment at which each was seen to be valid. */
  readonly seen: readonly (readonly [hold: string, at: number])[]
  readonly question?: Question & { ask: number }
}

export interface Worker {
  readonly number: number
  readonly way: Way
  child: ChildProcess
  /** Holds whose end is not known yet, with the last moment at which they were surely valid. */
  readonly open: Map<string, number>
  /** Those of them that are held for long, with the moment at which the worker knew of the grant. */
  readonly openLong: Map<string, number>
}

/** Processes that contend for the same locks. It writes the history of what they do to a file. */
export class Crowd implements Moments {
  readonly workers: Worker[] = []
  readonly grantsAt: number[] = []
  readonly losses: Span[] = []
  readonly unavailable: Span[] = []
  readonly refusalsAt: number[] = []
  readonly failures: Span[] = []
  /** What no fault explains. */
  readonly odd: string[] = []
  /** What the store says about itself, such as its version. */
  server = ''
  readonly #options: CrowdOptions
  readonly #longLocks: ReadonlySet<string>
  readonly #file: number
  #unwritten = ''
  readonly #registers = new Registers()
  readonly #expected = new Set<ChildProcess>()
  #healedAt = Number.POSITIVE_INFINITY
  #recoveredAt = 0
  #servedAt = 0
  readonly #stranded = new Set<string>()
  readonly #recovering = new Set<string>()
  #started = 0

  constructor(file: string, options: CrowdOptions) {
    this.#file = openSync(file, 'w')
    this.#options = options
    this.#longLocks = new Set(options.loops.filter(({ isLong }) => isLong).map(({ lock }) => lock))
  }

  get leaseMs(): number {
    return this.#options.leaseMs
  }

  async start(): Promise<void> {
    const numbers = Array.from({ length: this.#options.workers }, (_, number) => number)
    const ways = await Promise.all(numbers.map((number) => this.#options.wayOf(number)))
    for (const [number, way] of ways.entries())
      this.workers.push({ number, way, child: this.#fork(way), open: new Map(), openLong: new Map() })
    await Promise.all(this.workers.map((worker) => this.#listen(worker)))
  }

  /** kill -9; the worker stays in the list without a process until it is replaced. */
  async kill(worker: Worker): Promise<void> {
    await this.#ended(worker, () => worker.child.kill('SIGKILL'))
    const at = nowUs()
    for (const [hold, from] of worker.open) {
      this.write({ type: 'end', hold, from, to: null })
      this.losses.push({ from, at, lateUs: 0 })
    }
    worker.open.clear()
    worker.openLong.clear()
  }

  /**
   * Resolves when one of them was just granted a lock that it keeps for long, so that a fault is
   * sure to strike a hold. If that does not happen soon, resolves all the same.
   */
  async untilFresh(workers: readonly Worker[] = this.workers): Promise<Worker | undefined> {
    const isFresh = ({ openLong }: Worker): boolean =>
      [...openLong.values()].some((at) => nowUs() - at < FRESH_LEASES * this.leaseMs * 1000)
    const fresh = (): Worker | undefined => workers.find(isFresh)
    const limitMs = FRESH_WITHIN_LEASES * this.leaseMs
    await eventually('a fresh hold', () => fresh() !== undefined, limitMs).catch(nothing)
    return fresh()
  }

  /** Starts a new process in place of one that ended; resolves when it has reached the store. */
  async replace(worker: Worker, version: Version = 'present'): Promise<void> {
    worker.child = this.#fork(worker.way, version)
    await this.#listen(worker)
  }

  /** Lets it release what it holds, and starts another process in its place. */
  async restart(worker: Worker, version: Version = 'present'): Promise<void> {
    await this.#ended(worker, () => worker.child.send('end'))
    await this.replace(worker, version)
  }

  /**
   * From now on, every task has to be granted again; unless it is said, locks that are held for long
   * do not count. The crowd has recovered when each client was granted each lock by any of its tasks.
   */
  healed({ isLongToo = false } = {}): void {
    this.#healedAt = nowUs()
    this.#recoveredAt = this.#healedAt
    this.#servedAt = this.#healedAt
    this.#stranded.clear()
    this.#recovering.clear()
    for (const { number } of this.workers)
      for (let client = 0; client < this.#options.clients; client++)
        for (const loop of this.#options.loops)
          if (isLongToo || !loop.isLong) this.#awaits(number, client, loop)
  }

  #awaits(worker: number, client: number, { kind, lock, tasks = 1 }: Loop): void {
    const place = `${worker}.${client} ${kind} ${lock}`
    this.#recovering.add(place)
    for (let task = 0; task < tasks; task++) this.#stranded.add(`${place} ${task}`)
  }

  /** Who waits for what since `healed`. */
  get stranded(): string[] {
    return [...this.#stranded]
  }

  get hasRecovered(): boolean {
    return this.#recovering.size === 0
  }

  /** When the last client was granted its last lock; valid when nobody is stranded. */
  get recoveredAt(): number {
    return this.#recoveredAt
  }

  /** The same of the last task. */
  get servedAt(): number {
    return this.#servedAt
  }

  write(record: HistoryRecord): void {
    this.#unwritten += `${JSON.stringify(record)}\n`
    if (this.#unwritten.length > PIECE) this.#flush()
  }

  #flush(): void {
    writeSync(this.#file, this.#unwritten)
    this.#unwritten = ''
  }

  /** Lets everybody finish. */
  async end(): Promise<void> {
    const children = this.workers.map(({ child }) => child)
    for (const child of children) {
      this.#expected.add(child)
      child.kill('SIGCONT')
      if (child.connected) child.send('end')
    }
    await eventually('the end of the workers', () => children.every(isGone), END_LIMIT_MS).catch((error) =>
      this.odd.push(String(error)),
    )
  }

  /** Ends what is left. */
  async stop(): Promise<void> {
    for (const { child, way } of this.workers.splice(0)) {
      this.#expected.add(child)
      child.removeAllListeners('message')
      if (!isGone(child)) child.kill('SIGKILL')
      for (const proxy of way.proxies ?? []) await proxy.stop()
    }
    this.#flush()
    closeSync(this.#file)
  }

  #fork(way: Way, version: Version = 'present'): ChildProcess {
    const { leaseMs, askedLeaseMs, clients, loops } = this.#options
    const { url, members, quorum } = way
    const worker = ++this.#started
    const entry = pathToFileURL(entryOf(version === 'present' ? ROOT : previousFolder())).href
    const task = { entry, worker, url, members, quorum, leaseMs, askedLeaseMs, clients, loops }
    const child = fork(WORKER, [JSON.stringify(task)], { env: { ...process.env, ...way.env } })
    // Its hundreds of tasks must not starve the servers, nor this process with its proxies.
    if (child.pid !== undefined) setPriority(child.pid, Math.min(LOWEST, getPriority() + LOWER))
    return child
  }

  async #listen(worker: Worker): Promise<void> {
    const { child } = worker
    let isReady = false
    child.on('message', (message: News | { isReady: true; server?: string }) => {
      if ('isReady' in message) {
        isReady = true
        this.server ||= message.server ?? ''
      } else this.#note(worker, child, message)
    })
    child.once('exit', (code, signal) => {
      if (!this.#expected.has(child) && code !== 0) this.odd.push(`a worker ended with ${code ?? signal}`)
    })
    await eventually('a worker that has reached the store', () => isReady || isGone(child), READY_LIMIT_MS)
  }

  async #ended({ child }: Worker, how: () => void): Promise<void> {
    this.#expected.add(child)
    if (isGone(child)) return
    how()
    await eventually('the end of a worker', () => isGone(child), READY_LIMIT_MS)
  }

  #note(worker: Worker, child: ChildProcess, news: News): void {
    for (const record of news.records) {
      if (record.type === 'end') this.#ends(worker, record)
      else this.#granted(worker, record)
    }
    for (const [hold, at] of news.seen) if (worker.open.has(hold)) worker.open.set(hold, at)
    this.losses.push(...news.losses)
    this.unavailable.push(...news.unavailable)
    this.failures.push(...news.failures)
    this.odd.push(...news.odd)
    if (!news.question) return
    const { ask, ...question } = news.question
    const answer = this.#registers.answer(question)
    this.write(answer)
    if (answer.type === 'write' && !answer.isAccepted) this.refusalsAt.push(answer.to ?? 0)
    child.send({ ask, isAccepted: answer.isAccepted }, () => {})
  }

  #granted(worker: Worker, { client, task, ...record }: Granted): void {
    const { kind, lock, hold, from, to } = record
    this.write(record)
    // It still waited when the run was over.
    if (to === null) return
    worker.open.set(hold, from)
    if (this.#longLocks.has(lock)) worker.openLong.set(hold, to)
    this.grantsAt.push(to)
    if (to <= this.#healedAt) return
    const place = `${worker.number}.${client} ${kind} ${lock}`
    if (this.#stranded.delete(`${place} ${task}`)) this.#servedAt = Math.max(this.#servedAt, to)
    if (this.#recovering.delete(place)) this.#recoveredAt = Math.max(this.#recoveredAt, to)
  }

  #ends(worker: Worker, record: EndRecord): void {
    worker.open.delete(record.hold)
    worker.openLong.delete(record.hold)
    this.write(record)
  }
}

/** It has ended, and everything that it sent has arrived. */
function isGone({ exitCode, signalCode, connected }: ChildProcess): boolean {
  return (exitCode !== null || signalCode !== null) && !connected
}
