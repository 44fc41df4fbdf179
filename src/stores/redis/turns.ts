import type { Driver, Replicas } from './driver.js'
import { explain, explainReply, isReplica } from './failures.js'
import { turnScript } from './lua/turn.js'
import type { Runner } from './runner.js'

/** So many are sent at once, without waiting for more: the server works on them while this process goes on. */
const MOST_CALLS = 16

export interface Answer {
  readonly text: string
  /** Whether as many replicas as wanted have it. */
  readonly isSafe: boolean
}

interface Call {
  readonly key: string
  /** What the turn script takes for it. */
  readonly words: string
  resolve(answer: Answer): void
  reject(error: unknown): void
}

/**
 * Claims and releases that are made in the same turn of the event loop travel as one command: 64 tasks on 64 locks cost one command and one
 * reply, not 64. A Cluster takes them one by one, since a script may only touch one slot.
 */
export class Turns {
  readonly #runner: Runner
  readonly #replicas: Replicas | null
  #calls: Call[] = []

  constructor(runner: Runner, replicas: Replicas | null) {
    this.#runner = runner
    this.#replicas = replicas
  }

  submit(key: string, words: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      // Runs once all promises that are settled by now have been followed up: so one reply's callers meet in the next turn.
      if (this.#calls.length === 0) process.nextTick(() => this.#flush())
      this.#calls.push({ key, words, resolve, reject })
      if (this.#calls.length >= MOST_CALLS) this.#flush()
    })
  }

  #flush(): void {
    const calls = this.#calls
    if (calls.length === 0) return
    this.#calls = []
    const { driver } = this.#runner
    if (driver) this.#sendAll(driver, calls)
    else
      this.#runner.open().then(
        (opened) => this.#sendAll(opened, calls),
        (error) => {
          for (const call of calls) call.reject(explain(error))
        },
      )
  }

  #sendAll(driver: Driver, calls: readonly Call[]): void {
    if (!driver.isCluster) void this.#send(calls)
    else for (const call of calls) void this.#send([call])
  }

  /** Never rejects: the calls do. */
  async #send(calls: readonly Call[]): Promise<void> {
    try {
      const keys: string[] = []
      const args: string[] = []
      for (const call of calls) {
        keys.push(call.key)
        args.push(call.words)
      }
      const { text, isSafe } = await this.#run(keys, args)
      const answers = text.split(',')
      for (const [index, call] of calls.entries()) settle(call, answers[index] ?? '', isSafe)
    } catch (error) {
      if (isReplica(error)) this.#runner.suspect()
      for (const call of calls) call.reject(explain(error))
    }
  }

  async #run(keys: readonly string[], args: readonly string[]): Promise<Answer> {
    if (!this.#replicas) return { text: String(await this.#runner.run(turnScript, keys, args)), isSafe: true }
    // A release that a fail-over loses costs time only.
    const isOnlyRelease = args.every((call) => call.startsWith('release '))
    const wanted = isOnlyRelease ? { count: 0, timeoutMs: 1 } : this.#replicas
    const { reply, acknowledged } = await this.#runner.runDurably(turnScript, keys, args, wanted)
    const isSafe = acknowledged >= this.#replicas.count
    if (!isSafe && !isOnlyRelease) this.#runner.suspect()
    return { text: String(reply), isSafe }
  }
}

function settle(call: Call, text: string, isSafe: boolean): void {
  if (text.startsWith('error ')) call.reject(explainReply(text.slice('error '.length)))
  else call.resolve({ text, isSafe })
}
