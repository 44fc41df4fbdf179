import type { Env } from '../../base/env.js'
import type { MemcachedError, MetaListener, MetaReply } from '../../drivers/memcached/index.js'
import { withWait } from '../shared/call-batcher.js'
import { contended, explain, LineFullError } from './failures.js'
import type { LineCall, MemcachedLine } from './line.js'
import { LineDraft, type LineNews } from './line-draft.js'

const MOST_ATTEMPTS = 50
/** Others came between so often: from then on it waits for a moment before each attempt. */
const HASTY_ATTEMPTS = 2
const LONGEST_PAUSE_MS = 16

export interface LineBatchContext {
  readonly env: Env
  /** The line was read: other clients may have changed it. */
  onSeen(line: MemcachedLine): void
  /** The line was written, with news for clients. */
  onWritten(line: MemcachedLine, news: readonly LineNews[]): void
  /** The calls of the batch are answered. */
  onEnd(line: MemcachedLine): void
}

/**
 * Calls of one line, which one compare-and-set serves. It hears the reply to its write itself: a
 * free lock costs no promise but that of its caller.
 */
export class LineBatch implements MetaListener {
  readonly kind = 'meta'
  readonly #context: LineBatchContext
  readonly #line: MemcachedLine
  readonly #calls: LineCall[]
  /** When it began, if its calls have waited for it. */
  readonly #startedAt: number
  #attempts = 0
  /** What nobody writes down must have been true during the batch. */
  #isFresh = false
  #draft: LineDraft | undefined
  #replies: readonly unknown[] = []

  constructor(context: LineBatchContext, line: MemcachedLine, calls: LineCall[], startedAt: number) {
    this.#context = context
    this.#line = line
    this.#calls = calls
    this.#startedAt = startedAt
  }

  start(): void {
    try {
      this.#attempt()
    } catch (error) {
      this.#fail(error)
    }
  }

  /** The answer to the write. */
  resolve(reply: MetaReply): void {
    try {
      if (!this.#line.wrote(reply)) return this.#again()
      this.#context.onWritten(this.#line, this.#draft?.news ?? [])
      this.#answer()
    } catch (error) {
      this.#fail(error)
    }
  }

  /** The write failed, or its answer was lost. */
  reject(error: MemcachedError): void {
    this.#fail(explain(error))
  }

  #attempt(): void {
    const { node, image } = this.#line
    if (!node.isReady) return this.#after(node.ready())
    if (!image) return this.#after(this.#read())
    const draft = new LineDraft(image, node.now(), node.mostBytes)
    const replies = runAll(this.#calls, draft)
    if (this.#calls.length === 0) return this.#context.onEnd(this.#line)
    if (!replies) return this.#attempt()
    this.#replies = replies
    this.#draft = draft
    if (draft.hasChanged) this.#line.write(draft.image, this)
    else if (this.#isFresh) this.#answer()
    else this.#again()
  }

  async #read(): Promise<void> {
    this.#line.see(await this.#line.read())
    this.#isFresh = true
    this.#context.onSeen(this.#line)
  }

  /** Another client came between, or what is known may be old. */
  #again(): void {
    this.#line.forget()
    this.#isFresh = false
    if (++this.#attempts >= MOST_ATTEMPTS) throw contended(`the line of '${this.#line.resource}'`)
    if (this.#attempts > HASTY_ATTEMPTS) this.#after(this.#pause())
    else this.#attempt()
  }

  #pause(): Promise<void> {
    const { env } = this.#context
    const ms = env.random() * Math.min(LONGEST_PAUSE_MS, this.#attempts)
    return new Promise((resolve) => {
      env.timer(ms, resolve, { keepAlive: false })
    })
  }

  #after(step: Promise<void>): void {
    step.then(
      () => this.start(),
      (error) => this.#fail(error),
    )
  }

  /** The lease of a grant counts from the start of its batch, which is before it was granted. */
  #answer(): void {
    for (const [index, { submittedAt, resolve, reject }] of this.#calls.entries()) {
      const reply = this.#replies[index]
      const waitedMs = this.#startedAt - submittedAt
      if (isRefused(reply)) reject(reply)
      else resolve(waitedMs < 1 ? reply : withWait(reply, waitedMs))
    }
    this.#context.onEnd(this.#line)
  }

  #fail(error: unknown): void {
    for (const { reject } of this.#calls) reject(error)
    this.#context.onEnd(this.#line)
  }
}

/** The replies; null: a call failed and was answered, so the others have to run without it. */
function runAll(calls: LineCall[], draft: LineDraft): unknown[] | null {
  const replies: unknown[] = []
  for (const call of calls) {
    try {
      replies.push(call.run(draft.calls))
    } catch (error) {
      if (!isRefused(error)) {
        calls.splice(calls.indexOf(call), 1)
        call.reject(error)
        return null
      }
      // Of the line as it is in this batch, as any other reply.
      replies.push(error)
    }
  }
  return replies
}

function isRefused(reply: unknown): boolean {
  return reply instanceof LineFullError
}
