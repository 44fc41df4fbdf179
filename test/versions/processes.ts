import { type ChildProcess, fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { entryOf, missingPrevious, previousFolder } from '../../scripts/previous.mjs'
import { deferred } from '../../src/base/deferred.js'
import { inTime } from '../../src/testing/conformance/checks.js'
import { root } from '../project/sources.js'

export type Version = 'previous' | 'present'
export const VERSIONS: readonly Version[] = ['previous', 'present']

type Kind = 'mutex' | 'read' | 'write' | 'semaphore'

/** Of a client: what differs from STEADY. */
interface ClientOptions {
  readonly order?: 'cohort' | 'strict'
  /** Of those that are killed. */
  readonly presence?: string
}

/** A busy machine must not end a hold, a wait or a call. */
const STEADY = { order: 'strict', lease: '1m', presence: '1m', storeTimeout: '1m' }

/** null: the previous version is built. Otherwise why not. */
export const obstacle: string | null = missingPrevious()

export function otherThan(version: Version): Version {
  return version === 'previous' ? 'present' : 'previous'
}

/** What a process can do; see worker.mjs. */
interface Api {
  acquire(kind: Kind, name: string, options?: object): { hold: number; fence: number }
  tryAcquire(kind: Kind, name: string): { hold: number; fence: number } | null
  release(hold: number): boolean
  isValid(hold: number): boolean
  queue(kind: Kind, name: string, options?: object): null
  grants(name: string): number[]
  line(name: string): { holders: number; waiters: number }
  count(name: string, counter: string, ledger: string, tasks: number, times: number): null
  hammer(name: string, lease: string): null
  hammered(): number
  campaign(name: string, id: string, options?: object): { leadership: number; term: number }
  resign(leadership: number): boolean
  leader(name: string): string | null
  once(name: string, options: object): boolean
  export(hold: number): string
  adopt(text: string): { hold: number; fence: number }
  breakHold(name: string): null
  countDown(name: string, total: number): number
  waitForLatch(name: string, total: number): null
  meet(name: string, parties: number): null
}

/** For failures only: a busy machine can take long. */
const LIMIT_MS = 240_000

interface Message {
  readonly call: number
  readonly value?: unknown
  readonly error?: string
}

/** Another process, with a client of one of the versions. */
export class VersionProcess {
  readonly version: Version
  readonly #child: ChildProcess
  readonly #calls = new Map<number, ReturnType<typeof deferred<unknown>>>()
  readonly #exited: Promise<unknown>
  #number = 0

  private constructor(version: Version, url: string, options: ClientOptions) {
    this.version = version
    const entry = entryOf(version === 'previous' ? previousFolder() : root)
    const args = [entry, url, JSON.stringify({ ...STEADY, ...options })]
    this.#child = fork(join(import.meta.dirname, 'worker.mjs'), args, {
      execArgv: [],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    this.#child.on('message', (message) => this.#onMessage(message as Message))
    this.#exited = new Promise((resolve) => this.#child.once('exit', resolve))
    void this.#exited.then(() => {
      for (const { reject } of this.#calls.values()) reject(new Error(`a ${version} process ended`))
    })
  }

  /** `atEnd` is given what kills it. */
  static async start(
    version: Version,
    url: string,
    atEnd: (kill: () => Promise<void>) => void,
    options: ClientOptions = {},
  ): Promise<VersionProcess> {
    const process = new VersionProcess(version, url, options)
    atEnd(() => process.kill())
    await inTime(`a process of the ${version} version`, process.#expect(0), LIMIT_MS)
    return process
  }

  /** Rejects with what went wrong there. */
  ask<M extends keyof Api>(method: M, ...args: Parameters<Api[M]>): Promise<ReturnType<Api[M]>> {
    const call = ++this.#number
    const answer = this.#expect(call)
    this.#child.send({ call, method, args })
    return inTime(
      `${method}(${args.join(', ')}) in the ${this.version} version`,
      answer,
      LIMIT_MS,
    ) as Promise<ReturnType<Api[M]>>
  }

  /** kill -9. Resolves when the process is no more. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#exited
  }

  #expect(call: number): Promise<unknown> {
    const answer = deferred<unknown>()
    // One that was killed on purpose has no answer.
    answer.promise.catch(() => {})
    this.#calls.set(call, answer)
    return answer.promise
  }

  #onMessage({ call, value, error }: Message): void {
    const answer = this.#calls.get(call)
    this.#calls.delete(call)
    if (error === undefined) answer?.resolve(value)
    else answer?.reject(new Error(`in the ${this.version} version: ${error}`))
  }
}

/** Starts a process of a version on a store. */
export type Start = (version: Version, options?: ClientOptions) => Promise<VersionProcess>

/** One process of each version. */
export type Both = Readonly<Record<Version, VersionProcess>>

export async function startBoth(start: Start, options?: ClientOptions): Promise<Both> {
  const [previous, present] = await Promise.all(VERSIONS.map((version) => start(version, options)))
  if (!previous || !present) throw new Error('no processes')
  return { previous, present }
}

export function numbersIn(file: string): number[] {
  return readFileSync(file, 'utf8').trimEnd().split('\n').map(Number)
}
