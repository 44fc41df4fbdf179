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
 * How long the file may be busy without any change before calls fail. A transaction lasts
 * milliseconds, so the process that has the file is stopped. Shorter than the engine's timeout for
 * one call (10 s), so that the error names the cause. While the file changes, calls wait: failed
 * calls would be retried one by one, and lose their order.
 */
const STUCK_AFTER_MS = 3000
/** The longest transaction. Other processes get the file before the rest of the calls. */
const LONGEST_BATCH_MS = 10
/** Pause between two batches while other processes use the file: they need a gap to get it. */
const PAUSE_MS = 1
/** Attempts in a row: some tens of microseconds each, the length of another's transaction. */
const ATTEMPTS_PER_ROUND = 20
const FIRST_RETRY_MS = 1
const MOST_RETRY_MS = 16
/** How often to check that the path still leads to the open file. */
const IDENTITY_CHECK_MS = 1000

interface Call {
  run(file: LockFile): unknown
  readonly isRead: boolean
  readonly isUrgent: boolean
  /** false for maintenance: the process may end without it. */
  readonly keepsAlive: boolean
  readonly submittedAt: number
  resolve(result: unknown): void
  reject(error: HoldfastError): void
}

export interface BatchCallOptions {
  isRead?: boolean
  isBackground?: boolean
  /** Goes ahead of all calls that are not urgent. */
  isUrgent?: boolean
}

export interface BatchesOptions {
  readonly path: string
  readonly env: Env
  open(): Promise<LockFile>
  /** Runs after a commit and before the answers: the caller may release and exit at once. */
  tell(messages: readonly Message[]): Promise<unknown> | undefined
  /** The path leads to another file now; the claims in the old one are gone. */
  replaced(): void
}

/**
 * Runs the calls of one event loop iteration in one transaction, in order of arrival. While another
 * process has the file, the whole batch waits and is run again from the start.
 */
export class Batches {
  readonly #options: BatchesOptions
  #file: LockFile | undefined
  #queue: Call[] = []
  /** The next batch; undefined: none is scheduled or running. */
  #next: { cancel: Cancel; keepsAlive: boolean } | undefined
  #attempt = 0
  /** When a batch last ran or the file last changed; at first, when the file was first busy. */
  #progressAt: number | undefined
  /** The file's version, while calls wait. */
  #version: number | undefined
  #checkIdentityAt = 0
  #onIdle: (() => void)[] = []

  constructor(options: BatchesOptions) {
    this.#options = options
  }

  submit<T>(run: (file: LockFile) => T, options: BatchCallOptions = {}): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const submittedAt = this.#options.env.now()
      const { isRead = false, isBackground = false, isUrgent = false } = options
      const call = { run, isRead, isUrgent, keepsAlive: !isBackground, submittedAt, reject }
      this.#enqueue({ ...call, resolve: resolve as (result: unknown) => void })
      // A retry for maintenance calls alone lets the process end; this call must keep it alive.
      if (this.#next && !this.#next.keepsAlive && call.keepsAlive) {
        this.#next.cancel()
        this.#next = undefined
      }
      if (!this.#next) this.#runSoon()
    })
  }

  #enqueue(call: Call): void {
    const index = call.isUrgent ? this.#queue.findIndex(({ isUrgent }) => !isUrgent) : -1
    if (index < 0) this.#queue.push(call)
    else this.#queue.splice(index, 0, call)
  }

  /** Waits until no call is left. */
  async idle(): Promise<void> {
    while (this.#next) await new Promise<void>((resolve) => this.#onIdle.push(resolve))
  }

  get isOpen(): boolean {
    return this.#file !== undefined
  }

  /** Closes the file; the next call opens it again. */
  closeFile(): void {
    const file = this.#file
    this.#file = undefined
    // What was answered is durable already, so a failure to close loses nothing.
    attempt(() => file?.close())
  }

  #runSoon(): void {
    // Outside the async context of the first caller: the batch serves others, too.
    const immediate = detached(() => setImmediate(() => void this.#runBatch()))
    this.#next = { cancel: () => clearImmediate(immediate), keepsAlive: true }
  }

  #runIn(ms: number): void {
    const keepsAlive = this.#queue.some((call) => call.keepsAlive)
    const cancel = this.#options.env.timer(ms, () => void this.#runBatch(), { keepAlive: keepsAlive })
    this.#next = { cancel, keepsAlive }
  }

  #retry(): void {
    const { env } = this.#options
    this.#attempt += 1
    // At once: a transaction of another process takes microseconds, the shortest timer a thousand
    // of them.
    if (this.#attempt % ATTEMPTS_PER_ROUND !== 0) return this.#runSoon()
    // A round of attempts after each pause: a single one starves beside a process that has the file
    // most of the time.
    this.#runIn(backoffMs(this.#attempt / ATTEMPTS_PER_ROUND, env.random(), FIRST_RETRY_MS, MOST_RETRY_MS))
  }

  /** Never throws: every failure goes to calls. */
  async #runBatch(): Promise<void> {
    this.#next = { cancel: () => {}, keepsAlive: true }
    try {
      this.#closeReplacedFile()
      if (!this.#file) this.#file = await this.#options.open()
      this.#run(this.#file, this.#queue)
      this.#attempt = 0
      this.#progressAt = this.#options.env.now()
    } catch (error) {
      if (isBusy(error)) return this.#waitForFile(error)
      this.#failAll(error)
    }
    this.#endBatch()
  }

  #endBatch(): void {
    this.#next = undefined
    if (this.#queue.length > 0) return this.#hasFileChanged() ? this.#runIn(PAUSE_MS) : this.#runSoon()
    this.#version = undefined
    for (const resolve of this.#onIdle.splice(0)) resolve()
  }

  /** Runs calls in one transaction, as many as fit into its time, and answers them. */
  #run(file: LockFile, calls: readonly Call[]): void {
    const results: unknown[] = []
    let current: Call | undefined
    const work = (): void => {
      const { env } = this.#options
      const end = env.now() + LONGEST_BATCH_MS
      for (const call of calls) {
        current = call
        results.push(call.run(file))
        if (env.now() >= end) break
      }
      current = undefined
    }
    let messages: readonly Message[] = []
    try {
      if (calls.every((call) => call.isRead)) file.read(work)
      else messages = file.write(work)
    } catch (error) {
      if (current === undefined || resultCode(error) !== null) throw error
      return this.#failOne(current, error)
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

  #remove(calls: readonly Call[]): void {
    const removed = new Set(calls)
    this.#queue = removed.size === this.#queue.length ? [] : this.#queue.filter((call) => !removed.has(call))
  }

  /**
   * One call failed by itself. The others were rolled back with it, and are run again without it.
   */
  #failOne(call: Call, error: unknown): void {
    this.#remove([call])
    call.reject(explain(error, this.#options.path))
  }

  #failAll(error: unknown): void {
    if (!leavesHandleUsable(error)) this.closeFile()
    const explained = explain(error, this.#options.path)
    for (const call of this.#queue.splice(0)) call.reject(explained)
  }

  #waitForFile(error: unknown): void {
    this.#runReads()
    const now = this.#options.env.now()
    this.#progressAt ??= now
    if (this.#attempt % ATTEMPTS_PER_ROUND === 0 && this.#hasFileChanged()) this.#progressAt = now
    const isStuck = now - this.#progressAt >= STUCK_AFTER_MS
    const late = isStuck ? this.#queue.filter((call) => now - call.submittedAt >= STUCK_AFTER_MS) : []
    this.#remove(late)
    for (const call of late) call.reject(busyTooLong(this.#options.path, error))
    if (this.#queue.length === 0) return this.#endBatch()
    this.#retry()
  }

  /** Whether another process has changed the file since the last call of this method. */
  #hasFileChanged(): boolean {
    const before = this.#version
    attempt(() => {
      this.#version = this.#file?.version()
    })
    return before !== undefined && this.#version !== before
  }

  /** Reads need not wait for a writer: SQLite shows them the file as it was before. */
  #runReads(): void {
    const reads = this.#queue.filter((call) => call.isRead)
    const isMixed = reads.length > 0 && reads.length < this.#queue.length
    if (!this.#file || !isMixed) return
    try {
      this.#run(this.#file, reads)
    } catch (error) {
      if (!isBusy(error)) this.#failAll(error)
    }
  }

  #closeReplacedFile(): void {
    const now = this.#options.env.now()
    if (!this.#file || now < this.#checkIdentityAt) return
    this.#checkIdentityAt = now + IDENTITY_CHECK_MS
    if (!this.#file.isReplaced()) return
    this.closeFile()
    this.#options.replaced()
  }
}
