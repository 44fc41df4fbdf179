import type { RedisDriver, Replicas } from './driver.js'
import { explainReply } from './failures.js'
import { batchScript } from './lua/batch.js'
import type { RedisRunner } from './runner.js'

/**
 * A batch of this size is sent at once: the server works on it while this process makes the next
 * one.
 */
const MOST_CALLS = 64

export interface AnswerReader<T> {
  /**
   * Takes the answer, and whether as many replicas as wanted have it. What it throws rejects the
   * call.
   */
  read(answer: string, isReplicated: boolean): T
  /** There is no answer. */
  onError?(): void
}

interface Call {
  readonly key: string
  /** What the script takes for it. */
  readonly text: string
  readonly reader: AnswerReader<unknown>
  resolve(value: unknown): void
  reject(error: unknown): void
}

/**
 * Claims and releases that are made in the same tick of the event loop travel as one command: 64
 * tasks on 64 locks cost one command and one reply, not 64. In a Cluster each is a command of its
 * own, since a script may only touch one slot.
 */
export class RedisBatcher {
  readonly #runner: RedisRunner
  readonly #replicas: Replicas | null
  #calls: Call[] = []
  readonly #flush = (): void => this.#sendCollected()

  constructor(runner: RedisRunner, replicas: Replicas | null) {
    this.#runner = runner
    this.#replicas = replicas
  }

  submit<T>(key: string, text: string, reader: AnswerReader<T>): Promise<T> {
    return new Promise<unknown>((resolve, reject) => {
      const count = this.#calls.push({ key, text, reader, resolve, reject })
      // Runs once all promises that are settled by now have been followed up: so the callers of one
      // reply meet in the next batch.
      if (count === 1) process.nextTick(this.#flush)
      else if (count >= MOST_CALLS) this.#sendCollected()
    }) as Promise<T>
  }

  #sendCollected(): void {
    const calls = this.#calls
    if (calls.length === 0) return
    this.#calls = []
    const { driver } = this.#runner
    if (driver) this.#sendAll(driver, calls)
    else
      this.#runner.open().then(
        (opened) => this.#sendAll(opened, calls),
        (error) => this.#fail(calls, error),
      )
  }

  #sendAll(driver: RedisDriver, calls: readonly Call[]): void {
    if (!driver.isCluster) this.#send(calls)
    else for (const call of calls) this.#send([call])
  }

  #send(calls: readonly Call[]): void {
    const keys = calls.map(({ key }) => key)
    const args = calls.map(({ text }) => text)
    const onError = (error: unknown): void => this.#fail(calls, error)
    if (this.#replicas) this.#sendDurably(calls, keys, args, this.#replicas).catch(onError)
    else
      this.#runner
        .run(batchScript, keys, args)
        .then((reply) => this.#deliver(calls, String(reply), true), onError)
  }

  async #sendDurably(
    calls: readonly Call[],
    keys: readonly string[],
    args: readonly string[],
    replicas: Replicas,
  ): Promise<void> {
    // A release that a fail-over loses costs time only.
    const areReleases = args.every((text) => text.startsWith('release '))
    const wanted = areReleases ? { count: 0, timeoutMs: 1 } : replicas
    const { reply, acknowledged } = await this.#runner.runDurably(batchScript, keys, args, wanted)
    const isReplicated = acknowledged >= replicas.count
    if (!isReplicated && !areReleases) this.#runner.missReplicas()
    this.#deliver(calls, String(reply), isReplicated)
  }

  #deliver(calls: readonly Call[], text: string, isReplicated: boolean): void {
    const answers = calls.length === 1 ? [text] : text.split(',')
    for (let index = 0; index < calls.length; index++)
      this.#deliverOne(calls[index] as Call, answers[index] ?? '', isReplicated)
  }

  #deliverOne(call: Call, answer: string, isReplicated: boolean): void {
    if (answer.startsWith('error ')) return this.#fail([call], explainReply(answer.slice('error '.length)))
    try {
      call.resolve(call.reader.read(answer, isReplicated))
    } catch (error) {
      call.reject(error)
    }
  }

  #fail(calls: readonly Call[], error: unknown): void {
    for (const call of calls) {
      call.reader.onError?.()
      call.reject(this.#runner.failureOf(error))
    }
  }
}
