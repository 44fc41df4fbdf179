import type { EmbeddedLines } from '../embedded/lines.js'
import type { LineCall, MemcachedLine } from './line.js'
import { LineBatch, type LineBatchContext } from './line-batch.js'

/** The most calls of one batch. */
const MOST_CALLS = 500

/**
 * The calls of all lines. While a batch of a line is under way, further calls of that line gather:
 * one compare-and-set serves them all, and they do not collide with each other.
 */
export class LineCalls {
  readonly #context: LineBatchContext

  constructor(context: Omit<LineBatchContext, 'onEnd'>) {
    this.#context = { ...context, onEnd: (line) => this.#onEnd(line) }
  }

  submit<T>(
    line: MemcachedLine,
    run: (calls: EmbeddedLines) => T,
    resolve: (reply: T) => void,
    reject: (error: unknown) => void,
  ): void {
    if (line.queue) {
      const submittedAt = this.#context.env.now()
      line.queue.push({ submittedAt, run, resolve, reject } as LineCall)
    } else {
      line.queue = []
      this.#send(line, [{ submittedAt: 0, run, resolve, reject } as LineCall], 0)
    }
  }

  #send(line: MemcachedLine, calls: LineCall[], startedAt: number): void {
    line.turn++
    new LineBatch(this.#context, line, calls, startedAt).start()
  }

  #onEnd(line: MemcachedLine): void {
    line.turn++
    const queue = line.queue ?? []
    if (queue.length === 0) line.queue = undefined
    else this.#send(line, queue.splice(0, MOST_CALLS), this.#context.env.now())
  }
}
