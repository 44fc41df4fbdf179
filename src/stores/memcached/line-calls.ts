import type { Env } from '../../base/env.js'
import type { EmbeddedLines } from '../embedded/lines.js'
import { withWait } from '../shared/call-batcher.js'
import { contended, LineFullError } from './failures.js'
import type { LineCall, MemcachedLine } from './line.js'
import { LineDraft, type LineNews } from './line-draft.js'

const MOST_ATTEMPTS = 50
/** Others came between so often: from then on it waits for a moment before each attempt. */
const HASTY_ATTEMPTS = 2
const LONGEST_PAUSE_MS = 16
/** The most calls of one batch. */
const MOST_CALLS = 500

export interface LineCallsContext {
  readonly env: Env
  /** The line was read: other clients may have changed it. */
  onSeen(line: MemcachedLine): void
  /** The line was written, with news for clients. */
  onWritten(line: MemcachedLine, news: readonly LineNews[]): void
}

/**
 * The calls of all lines. While a batch of a line is under way, further calls of that line gather:
 * one compare-and-set serves them all, and they do not collide with each other.
 */
export class LineCalls {
  readonly #context: LineCallsContext

  constructor(context: LineCallsContext) {
    this.#context = context
  }

  submit<T>(line: MemcachedLine, run: (calls: EmbeddedLines) => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const submittedAt = this.#context.env.now()
      const call = { submittedAt, run, resolve, reject } as LineCall
      if (line.queue) line.queue.push(call)
      else {
        line.queue = []
        this.#send(line, [call])
      }
    })
  }

  #send(line: MemcachedLine, calls: LineCall[]): void {
    line.turn++
    const end = (): void => {
      line.turn++
      const queue = line.queue ?? []
      if (queue.length === 0) line.queue = undefined
      else this.#send(line, queue.splice(0, MOST_CALLS))
    }
    const fail = (error: unknown): void => {
      for (const { reject } of calls) reject(error)
      end()
    }
    const commit = (): Promise<void> => this.#commit(line, calls).then(end, fail)
    const written = this.#writeAtOnce(line, calls)
    if (!written) void commit()
    else written.then((isWritten) => (isWritten ? end() : commit()), fail)
  }

  /**
   * The usual case, with few promises: one call on a line that is known. null: it is another case,
   * or the line has to be read. The promise is of false where another client came between.
   */
  #writeAtOnce(line: MemcachedLine, calls: LineCall[]): Promise<boolean> | null {
    const [call] = calls
    const { image } = line
    if (!image || !call || calls.length > 1 || !line.node.isReady) return null
    const draft = new LineDraft(image, line.node.now(), line.node.mostBytes)
    const replies = runAll(calls, draft)
    if (!replies || !draft.hasChanged || isRefused(replies[0])) return null
    return line.write(draft.image).then((isWritten) => {
      if (!isWritten) return false
      this.#context.onWritten(line, draft.news)
      call.resolve(replies[0])
      return true
    })
  }

  /** Answers the calls, or throws. A call that fails by itself is taken out of `calls`. */
  async #commit(line: MemcachedLine, calls: LineCall[]): Promise<void> {
    const startedAt = this.#context.env.now()
    // What nobody writes down must have been true during the batch.
    let isFresh = false
    for (let attempt = 0; attempt < MOST_ATTEMPTS && calls.length > 0; attempt++) {
      if (attempt > HASTY_ATTEMPTS) await this.#pause(attempt)
      if (!line.node.isReady) await line.node.ready()
      let image = line.image
      if (!image) {
        image = line.see(await line.read())
        isFresh = true
        this.#context.onSeen(line)
      }
      const draft = new LineDraft(image, line.node.now(), line.node.mostBytes)
      const replies = runAll(calls, draft)
      if (!replies) continue
      if (draft.hasChanged ? await line.write(draft.image) : isFresh) {
        if (draft.hasChanged) this.#context.onWritten(line, draft.news)
        answer(calls, replies, startedAt)
        return
      }
      line.forget()
      isFresh = false
    }
    if (calls.length > 0) throw contended(`the line of '${line.resource}'`)
  }

  #pause(attempt: number): Promise<void> {
    const { env } = this.#context
    const ms = env.random() * Math.min(LONGEST_PAUSE_MS, attempt)
    return new Promise((resolve) => {
      env.timer(ms, resolve, { keepAlive: false })
    })
  }
}

/** The replies; null: a call failed and was answered, so the others have to run without it. */
function runAll(calls: LineCall[], draft: LineDraft): unknown[] | null {
  const replies: unknown[] = []
  for (const [index, call] of calls.entries()) {
    try {
      replies.push(call.run(draft.calls))
    } catch (error) {
      if (error instanceof LineFullError) {
        // Of the line as it is in this batch, as any other reply.
        replies.push(error)
        continue
      }
      calls.splice(index, 1)
      call.reject(error)
      return null
    }
  }
  return replies
}

function isRefused(reply: unknown): boolean {
  return reply instanceof LineFullError
}

/** The lease of a grant counts from the start of its batch, which is before it was granted. */
function answer(calls: readonly LineCall[], replies: readonly unknown[], startedAt: number): void {
  for (const [index, { submittedAt, resolve, reject }] of calls.entries()) {
    if (isRefused(replies[index])) {
      reject(replies[index])
      continue
    }
    const waitedMs = startedAt - submittedAt
    resolve(waitedMs < 1 ? replies[index] : withWait(replies[index], waitedMs))
  }
}
