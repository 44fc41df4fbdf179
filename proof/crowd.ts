import { type ChildProcess, fork } from 'node:child_process'
import { closeSync, openSync, writeSync } from 'node:fs'
import { constants, getPriority, setPriority } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { entryOf, previousFolder } from '../scripts/previous.mjs'
import type { QuorumOptions } from '../src/stores/quorum/index.js'
import { eventually } from '../src/testing/conformance/checks.js'
import type { TcpProxy } from '../test/servers/proxy.js'
import type { AcquireRecord, EndRecord, HistoryRecord, LockKind } from './history.js'
import { type Question, Registers } from './register.js'
import { nowUs } from './time.js'

const ROOT = join(import.meta.dirname, '..')
const WORKER = join(import.meta.dirname, 'worker.mjs')
const END_LIMIT_MS = 30_000
const READY_LIMIT_MS = 60_000
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

interface News {
  readonly records: readonly (Granted | EndRecord)[]
  readonly lossesAt: readonly number[]
  /** When a probe was told that the store is down. */
  readonly unavailableAt: readonly number[]
  readonly failures: number
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
}

/** Processes that contend for the same locks. It writes the history of what they do to a file. */
export class Crowd {
  readonly workers: Worker[] = []
  readonly grantsAt: number[] = []
  readonly lossesAt: number[] = []
  readonly unavailableAt: number[] = []
  readonly refusalsAt: number[] = []
  /** What no fault explains. */
  readonly odd: string[] = []
  /** Calls that failed, as they may while there is a fault. */
  failures = 0
  readonly #options: CrowdOptions
  readonly #file: number
  #unwritten = ''
  readonly #registers = new Registers()
  readonly #expected = new Set<ChildProcess>()
  #healedAt = Number.POSITIVE_INFINITY
  #recoveredAt = 0
  readonly #stranded = new Set<string>()
  readonly #recovering = new Set<string>()
  #started = 0

  constructor(file: string, options: CrowdOptions) {
    this.#file = openSync(file, 'w')
    this.#options = options
  }

  get leaseMs(): number {
    return this.#options.leaseMs
  }

  async start(): Promise<void> {
    const numbers = Array.from({ length: this.#options.workers }, (_, number) => number)
    const ways = await Promise.all(numbers.map((number) => this.#options.wayOf(number)))
    for (const [number, way] of ways.entries())
      this.workers.push({ number, way, child: this.#fork(way), open: new Map() })
    await Promise.all(this.workers.map((worker) => this.#listen(worker)))
  }

  /** kill -9; the worker stays in the list without a process until it is replaced. */
  async kill(worker: Worker): Promise<void> {
    await this.#ended(worker, () => worker.child.kill('SIGKILL'))
    for (const [hold, from] of worker.open) this.write({ type: 'end', hold, from, to: null })
    worker.open.clear()
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
   * do not count. The crowd has recovered when each client was granted each lock.
   */
  healed({ isLongToo = false } = {}): void {
    this.#healedAt = nowUs()
    this.#recoveredAt = this.#healedAt
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

  /** When the last client was granted its last lock; valid when nobody is stranded. */
  get recoveredAt(): number {
    return this.#recoveredAt
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
    child.on('message', (message: News | { isReady: true }) => {
      if ('isReady' in message) isReady = true
      else this.#note(worker, child, message)
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
    this.lossesAt.push(...news.lossesAt)
    this.unavailableAt.push(...news.unavailableAt)
    this.failures += news.failures
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
    this.grantsAt.push(to)
    if (to <= this.#healedAt) return
    const place = `${worker.number}.${client} ${kind} ${lock}`
    this.#stranded.delete(`${place} ${task}`)
    if (this.#recovering.delete(place)) this.#recoveredAt = Math.max(this.#recoveredAt, to)
  }

  #ends(worker: Worker, record: EndRecord): void {
    worker.open.delete(record.hold)
    this.write(record)
  }
}

/** It has ended, and everything that it sent has arrived. */
function isGone({ exitCode, signalCode, connected }: ChildProcess): boolean {
  return (exitCode !== null || signalCode !== null) && !connected
}
