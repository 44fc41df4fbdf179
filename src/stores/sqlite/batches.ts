import { backoffMs } from '../../base/backoff.js'
import { type Cancel, detached, type Env } from '../../base/env.js'
import type { HoldfastError } from '../../base/errors.js'
import { attempt } from '../../drivers/sqlite.js'
import {
  busyTooLong,
  explain,
  isBusy,
  leavesHandleUsable,
  resultCode,
} from '../../drivers/sqlite-failures.js'
import type { LockFile } from './lock-file.js'
import type { Message } from './outbox.js'

/**
 * For how long the file may be in use without a change by anybody. A turn lasts milliseconds, so only a process that is stopped inside
 * one takes that long. It is less than the engine waits for one call (a third of `storeTimeout`, 10 s), so that people read what is
 * wrong rather than "no answer". As long as others make changes our turn will come, and calls wait for it: those that failed would
 * come back one by one, and no longer in their order.
 */
const PATIENCE_MS = 3000
/** After that long in one transaction the rest of the calls wait for the next: other processes get a chance in between. */
const TURN_MS = 10
/** How long they wait, where there are others. Without that, the file would be free for too short a time to be found free. */
const REST_MS = 1
/** Some tens of microseconds each: enough to find the gap between two transactions of another process. */
const ATTEMPTS_PER_ROUND = 20
const FIRST_RETRY_MS = 1
const MOST_RETRY_MS = 16
/** How often to look whether the path still leads to the file that is open. */
const IDENTITY_CHECK_MS = 1000

interface Call {
  run(file: LockFile): unknown
  readonly isLook: boolean
  readonly isUrgent: boolean
  /** Whether somebody waits for it: house-keeping does not keep the process from ending. */
  readonly keepsAlive: boolean
  readonly submittedAt: number
  resolve(result: unknown): void
  reject(error: HoldfastError): void
}

export interface CallOptions {
  /** It only reads. */
  isLook?: boolean
  isBackground?: boolean
  /** It comes before all calls that are not. */
  isUrgent?: boolean
}

export interface BatchesOptions {
  readonly path: string
  readonly env: Env
  open(): Promise<LockFile>
  /** After a commit. The calls are answered when it is done: whoever ends his process then has told the next in line. */
  tell(messages: readonly Message[]): Promise<unknown> | undefined
  /** The path leads to another file now; what was in the old one is gone. */
  replaced(): void
}

/**
 * Puts the calls of one turn of the event loop into one transaction, in the order in which they came. When another process has the
 * file, the whole batch waits and is run again from scratch.
 */
export class Batches {
  readonly #options: BatchesOptions
  #file: LockFile | undefined
  #queue: Call[] = []
  /** Ends the wait for the next turn; undefined: no turn is under way. */
  #turn: { cancel: Cancel; keepsAlive: boolean } | undefined
  #attempt = 0
  /** When we have last had the file, or another process has changed it; before that, when we first could not have it. */
  #movedAt: number | undefined
  /** The file's version, while calls wait. */
  #version: number | undefined
  #checkIdentityAt = 0
  #idle: (() => void)[] = []

  constructor(options: BatchesOptions) {
    this.#options = options
  }

  submit<T>(run: (file: LockFile) => T, options: CallOptions = {}): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const submittedAt = this.#options.env.now()
      const { isLook = false, isBackground = false, isUrgent = false } = options
      const call = { run, isLook, isUrgent, keepsAlive: !isBackground, submittedAt, reject }
      this.#enqueue({ ...call, resolve: resolve as (result: unknown) => void })
      // A retry that only house-keeping waits for must not let the process end under this call.
      if (this.#turn && !this.#turn.keepsAlive && call.keepsAlive) {
        this.#turn.cancel()
        this.#turn = undefined
      }
      if (!this.#turn) this.#schedule()
    })
  }

  #enqueue(call: Call): void {
    const place = call.isUrgent ? this.#queue.findIndex(({ isUrgent }) => !isUrgent) : -1
    if (place < 0) this.#queue.push(call)
    else this.#queue.splice(place, 0, call)
  }

  /** Waits until no call is left. */
  async settled(): Promise<void> {
    while (this.#turn) await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  get isOpen(): boolean {
    return this.#file !== undefined
  }

  /** Closes the file; the next call opens it again. */
  closeFile(): void {
    const file = this.#file
    this.#file = undefined
    try {
      file?.close()
    } catch {
      // Closing is for tidiness: whatever was answered is durable already.
    }
  }

  #schedule(): void {
    // Outside the flow of whoever called first: the news of this turn are for others.
    const immediate = detached(() => setImmediate(() => void this.#takeTurn()))
    this.#turn = { cancel: () => clearImmediate(immediate), keepsAlive: true }
  }

  #scheduleRetry(): void {
    const { env } = this.#options
    this.#attempt += 1
    // In the next turn of the event loop: the other one needs only microseconds, the shortest timer a thousand.
    if (this.#attempt % ATTEMPTS_PER_ROUND !== 0) return this.#schedule()
    // A single attempt after each pause would starve beside a process that has the file nine tenths of the time.
    const ms = backoffMs(this.#attempt / ATTEMPTS_PER_ROUND, env.random(), FIRST_RETRY_MS, MOST_RETRY_MS)
    this.#takeTurnIn(ms)
  }

  #takeTurnIn(ms: number): void {
    const keepsAlive = this.#queue.some((call) => call.keepsAlive)
    const cancel = this.#options.env.timer(ms, () => void this.#takeTurn(), { keepAlive: keepsAlive })
    this.#turn = { cancel, keepsAlive }
  }

  /** Never throws: every failure belongs to calls. */
  async #takeTurn(): Promise<void> {
    this.#turn = { cancel: () => {}, keepsAlive: true }
    try {
      this.#dropReplaced()
      if (!this.#file) this.#file = await this.#options.open()
      this.#run(this.#file, this.#queue)
      this.#attempt = 0
      this.#movedAt = this.#options.env.now()
    } catch (error) {
      if (isBusy(error)) return this.#waitForFile(error)
      this.#failAll(error)
    }
    this.#endTurn()
  }

  #endTurn(): void {
    this.#turn = undefined
    if (this.#queue.length > 0) return this.#hasMoved() ? this.#takeTurnIn(REST_MS) : this.#schedule()
    this.#version = undefined
    for (const resolve of this.#idle.splice(0)) resolve()
  }

  /** Runs calls in one transaction, as many as fit into a turn, and answers them. */
  #run(file: LockFile, calls: readonly Call[]): void {
    const results: unknown[] = []
    let failing: Call | undefined
    const work = (): void => {
      const { env } = this.#options
      const end = env.now() + TURN_MS
      for (const call of calls) {
        failing = call
        results.push(call.run(file))
        if (env.now() >= end) break
      }
      failing = undefined
    }
    let messages: readonly Message[] = []
    try {
      if (calls.every((call) => call.isLook)) file.look(work)
      else messages = file.change(work)
    } catch (error) {
      if (failing === undefined || resultCode(error) !== null) throw error
      return this.#failOne(failing, error)
    }
    const done = calls.slice(0, results.length)
    this.#remove(done)
    const answer = (): void => {
      for (const [index, call] of done.entries()) call.resolve(results[index])
    }
    const telling = this.#options.tell(messages)
    if (telling) void telling.then(answer)
    else answer()
  }

  #remove(done: readonly Call[]): void {
    const gone = new Set(done)
    this.#queue = gone.size === this.#queue.length ? [] : this.#queue.filter((call) => !gone.has(call))
  }

  /** One call could not be done for a reason of its own; the others, undone with it, are run again without it. */
  #failOne(failing: Call, error: unknown): void {
    this.#remove([failing])
    failing.reject(explain(error, this.#options.path))
  }

  #failAll(error: unknown): void {
    if (!leavesHandleUsable(error)) this.closeFile()
    const explained = explain(error, this.#options.path)
    for (const call of this.#queue.splice(0)) call.reject(explained)
  }

  #waitForFile(error: unknown): void {
    this.#lookMeanwhile()
    const now = this.#options.env.now()
    this.#movedAt ??= now
    if (this.#attempt % ATTEMPTS_PER_ROUND === 0 && this.#hasMoved()) this.#movedAt = now
    const isStuck = now - this.#movedAt >= PATIENCE_MS
    const late = isStuck ? this.#queue.filter((call) => now - call.submittedAt >= PATIENCE_MS) : []
    this.#remove(late)
    for (const call of late) call.reject(busyTooLong(this.#options.path, error))
    if (this.#queue.length === 0) return this.#endTurn()
    this.#scheduleRetry()
  }

  /** Whether another process has changed the file since it was last asked this. */
  #hasMoved(): boolean {
    const before = this.#version
    attempt(() => {
      this.#version = this.#file?.version()
    })
    return before !== undefined && this.#version !== before
  }

  /** Who only looks need not wait for those who write: SQLite shows the file as it was before. */
  #lookMeanwhile(): void {
    const looks = this.#queue.filter((call) => call.isLook)
    const isMixed = looks.length > 0 && looks.length < this.#queue.length
    if (!this.#file || !isMixed) return
    try {
      this.#run(this.#file, looks)
    } catch (error) {
      if (!isBusy(error)) this.#failAll(error)
    }
  }

  #dropReplaced(): void {
    const now = this.#options.env.now()
    if (!this.#file || now < this.#checkIdentityAt) return
    this.#checkIdentityAt = now + IDENTITY_CHECK_MS
    if (!this.#file.isReplaced()) return
    this.closeFile()
    this.#options.replaced()
  }
}
