import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Deferred, deferred } from '../base/deferred.js'
import { type ErrorCode, HoldfastError } from '../base/errors.js'
import type { FromWorker, WorkerApi } from './worker.js'

export interface StartOptions {
  /** Added to the environment, for example LD_PRELOAD. */
  env?: Readonly<Record<string, string>>
}

export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
}

type Outcome<M extends keyof WorkerApi> = Awaited<ReturnType<WorkerApi[M]>>

/**
 * Another process with a Holdfast client in it, driven from here; see worker.ts for what it can do.
 */
export class WorkerClient {
  /** Unhandled rejections and uncaught errors of the process. */
  readonly complaints: string[] = []
  readonly exited: Promise<Exit>
  readonly #child: ChildProcess
  readonly #calls = new Map<number, Deferred<unknown>>()
  #nextCall = 1

  private constructor(child: ChildProcess) {
    this.#child = child
    this.exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.#failPending()
        resolve({ code, signal })
      })
    })
    child.on('message', (message) => this.#onMessage(message as FromWorker))
  }

  static async start(options: StartOptions = {}): Promise<WorkerClient> {
    const child = fork(workerPath(), [], {
      // The parent's own flags (a test runner's loader) are not for the worker.
      execArgv: [],
      env: { ...process.env, ...options.env },
      // Keeps dates, undefined and Infinity.
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    const worker = new WorkerClient(child)
    await worker.call('ping')
    return worker
  }

  get pid(): number {
    assert.ok(this.#child.pid !== undefined)
    return this.#child.pid
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  async call<M extends keyof WorkerApi>(method: M, ...args: Parameters<WorkerApi[M]>): Promise<Outcome<M>> {
    const answer = deferred<unknown>()
    const call = this.#nextCall++
    this.#calls.set(call, answer)
    // An answer that nobody waits for any more, because the process was killed on purpose, is no
    // unhandled rejection.
    answer.promise.catch(() => {})
    if (!this.#child.connected) answer.reject(new Error(`Process ${this.pid} is gone`))
    else this.#child.send({ call, method, args })
    return (await answer.promise) as Outcome<M>
  }

  /** kill -9. Resolves when the process is no more. */
  async kill(): Promise<void> {
    this.#signal('SIGKILL')
    await this.exited
  }

  /** Freezes the process. */
  pause(): void {
    this.#signal('SIGSTOP')
  }

  resume(): void {
    this.#signal('SIGCONT')
  }

  /** Leaves the process to itself: from now on it lives only as long as it has something to do. */
  async letGo(): Promise<void> {
    await this.call('letGo')
    this.#child.disconnect()
  }

  async end(): Promise<void> {
    this.#signal('SIGKILL')
    await this.exited
  }

  /** Not by `child.kill`: on Deno its first call closes the channel, and later ones do nothing. */
  #signal(signal: NodeJS.Signals): void {
    if (this.isRunning) process.kill(this.pid, signal)
  }

  #onMessage(message: FromWorker): void {
    if ('complaint' in message) {
      this.complaints.push(`process ${this.pid}: ${message.complaint}`)
      return
    }
    const answer = this.#calls.get(message.call)
    this.#calls.delete(message.call)
    if ('value' in message) answer?.resolve(message.value)
    else answer?.reject(revived(message.error))
  }

  #failPending(): void {
    for (const answer of this.#calls.values()) answer.reject(new Error(`Process ${this.pid} has ended`))
    this.#calls.clear()
  }
}

function revived(error: { code: string | null; message: string }): Error {
  return error.code === null
    ? new Error(error.message)
    : new HoldfastError(error.code as ErrorCode, error.message)
}

/** Processes run the compiled package, also when this file is run from its source. */
function workerPath(): string {
  const path = [__dirname, join(__dirname, '../../dist/cjs/testing')]
    .map((folder) => join(folder, 'worker.js'))
    .find((file) => existsSync(file))
  assert.ok(path, 'The compiled worker is missing: build the package first (npm run build)')
  return path
}
