import type { Cancel, Env } from '../../base/env.js'
import type { FewAtOnce } from '../../base/few-at-once.js'

export interface CallBatcherOptions<Call> {
  readonly env: Env
  /** Bounds how many batches are under way, so that connections are left for pulses. */
  readonly limit: FewAtOnce
  /** The most calls of a batch: their line is locked until all of them are done. */
  readonly mostCalls: number
  /** After this time the next batch of a line does not wait for the previous one. */
  readonly patienceMs: number
  /** Sends the calls of one line, in their order; resolves with one reply for each. */
  send(calls: readonly Call[]): Promise<readonly unknown[]>
}

interface Entry<Call> {
  readonly submittedAt: number
  readonly call: Call
  resolve(reply: unknown): void
  reject(error: unknown): void
}

/**
 * Claims and releases, line by line. While a batch of a line is under way, further calls of that
 * line gather, and travel together in their order. So claims join a line in the order in which they
 * were made, a line never takes more than one connection, and a burst costs a few round trips.
 */
export class CallBatcher<Call> {
  readonly #options: CallBatcherOptions<Call>
  /** By line, while a batch of it is under way: the calls that wait for it. */
  readonly #queues = new Map<string, Entry<Call>[]>()

  constructor(options: CallBatcherOptions<Call>) {
    this.#options = options
  }

  submit(line: string, call: Call): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const entry = { submittedAt: this.#options.env.now(), call, resolve, reject }
      const queue = this.#queues.get(line)
      if (queue) queue.push(entry)
      else {
        this.#queues.set(line, [])
        void this.#send(line, [entry])
      }
    })
  }

  /** Never rejects: the calls do. */
  async #send(line: string, entries: readonly Entry<Call>[]): Promise<void> {
    const { env, limit, patienceMs, send } = this.#options
    let cancel: Cancel = () => {}
    let isOver = false
    const goOn = (): void => {
      cancel()
      if (!isOver) this.#sendNext(line)
      isOver = true
    }
    try {
      let sentAt = 0
      const replies = await limit.run(() => {
        sentAt = env.now()
        cancel = env.timer(patienceMs, goOn, { keepAlive: false })
        return send(entries.map(({ call }) => call))
      })
      // The next batch leaves before the callers of this one go on.
      goOn()
      for (const [index, { submittedAt, resolve }] of entries.entries())
        resolve(withWait(replies[index], sentAt - submittedAt))
    } catch (error) {
      goOn()
      for (const { reject } of entries) reject(error)
    }
  }

  #sendNext(line: string): void {
    const queue = this.#queues.get(line) ?? []
    if (queue.length === 0) this.#queues.delete(line)
    else void this.#send(line, queue.splice(0, this.#options.mostCalls))
  }
}

/** The lease of a grant counts from the sending. */
export function withWait(reply: unknown, waitedMs: number): unknown {
  const { status } = Object(reply) as { status?: unknown }
  return status === 'granted' ? { ...(reply as object), waitedMs } : reply
}
