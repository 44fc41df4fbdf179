import type { Cancel, Env } from '../base/env.js'
import { HoldfastError } from '../base/errors.js'
import { nothing } from '../base/nothing.js'
import type { Operator } from '../primitives/operator.js'
import { type SeenLine, seenLine } from './lines.js'
import { Timeline } from './timeline.js'

/** Between two looks at a space, where a look is cheap. */
const LEAST_PAUSE_MS = 500
/** Between two looks, however much one costs. */
const LONGEST_PAUSE_MS = 3000
/** The pause after a look, in multiples of its CPU time: the looks take at most 3 % of a core. */
const PAUSE_PER_COST = 32
/** A look that takes longer is reported, although it may still succeed. */
const SILENT_MS = 3000
/** After a longer pause nobody knows when a claim left, so the timeline begins anew. */
const GAP_MS = 10_000

/** Who is told about each look. */
export interface PollListener {
  /** After a look that found a difference, or that follows a failure. */
  onChange(changed: readonly SeenLine[], gone: readonly string[]): void
  /** The store has begun to fail. */
  onTrouble(message: string): void
  /** The store answers again. */
  onFine(): void
}

/** The sums over all lines of a space. */
export interface Totals {
  readonly held: number
  readonly waiting: number
  /** Since when the longest waiter waits. */
  readonly waitingSinceMs: number | null
}

/**
 * Looks at all lines of a space again and again, once for all viewers, and only while there are
 * any.
 */
export class Poller {
  readonly timeline = new Timeline()
  readonly #env: Env
  readonly #operator: Operator
  readonly #listeners = new Set<PollListener>()
  #lines: ReadonlyMap<string, SeenLine> = new Map()
  #totals: Totals = { held: 0, waiting: 0, waitingSinceMs: null }
  #asOfMs = 0
  #dueAt = 0
  /** When the last look succeeded. */
  #lookedAt = -Infinity
  #looking: Promise<void> | null = null
  /** A change was made since the present look began: it may not show it. */
  #isHurried = false
  #failure: HoldfastError | null = null
  #isReported = false
  #cancel: Cancel = nothing
  #isClosed = false
  /** The CPU time of the last look, and the number of looks: for the metrics. */
  costMs = 0
  looks = 0

  constructor(env: Env, operator: Operator) {
    this.#env = env
    this.#operator = operator
  }

  /** The lines as the last look found them, by name. */
  get lines(): ReadonlyMap<string, SeenLine> {
    return this.#lines
  }

  get totals(): Totals {
    return this.#totals
  }

  /** The wall time of the last look that succeeded. */
  get asOfMs(): number {
    return this.#asOfMs
  }

  /** Why the last look failed; null: it succeeded. */
  get trouble(): string | null {
    return this.#failure?.message ?? null
  }

  /** Whether somebody watches, so that the lines are fresh by themselves. */
  get isWatched(): boolean {
    return this.#listeners.size > 0
  }

  /** Tells the listener of every look from now on. The returned function ends that. */
  watch(listener: PollListener): () => void {
    this.#listeners.add(listener)
    this.#plan()
    return () => {
      this.#listeners.delete(listener)
      if (!this.isWatched) this.#cancel()
    }
  }

  /** Makes sure that the lines are not older than the pause between two looks. */
  async fresh(): Promise<void> {
    await this.#looking
    if (this.#env.now() >= this.#dueAt) await this.#look()
    if (this.#failure) throw this.#failure
  }

  /** After a change by this server, the next look comes at once. */
  hurry(): void {
    this.#dueAt = 0
    this.#isHurried = true
    this.#plan()
  }

  close(): void {
    this.#isClosed = true
    this.#cancel()
    this.#listeners.clear()
  }

  #plan(): void {
    this.#cancel()
    if (!this.isWatched || this.#isClosed || this.#looking) return
    const inMs = Math.max(0, this.#dueAt - this.#env.now())
    this.#cancel = this.#env.timer(inMs, () => void this.#look(), { keepAlive: false })
  }

  #look(): Promise<void> {
    this.#looking ??= this.#lookOnce().finally(() => {
      this.#looking = null
      this.#plan()
    })
    return this.#looking
  }

  async #lookOnce(): Promise<void> {
    this.#isHurried = false
    const before = process.cpuUsage()
    const cancel = this.#env.timer(SILENT_MS, () => this.#report(`No answer for ${SILENT_MS / 1000} s`), {
      keepAlive: false,
    })
    try {
      await this.#read()
      this.#failure = null
    } catch (error) {
      this.#failure = asStoreFailure(error)
      this.#report(this.#failure.message)
    }
    cancel()
    const { user, system } = process.cpuUsage(before)
    this.costMs = (user + system) / 1000
    this.looks++
    const pauseMs = Math.min(LONGEST_PAUSE_MS, Math.max(LEAST_PAUSE_MS, this.costMs * PAUSE_PER_COST))
    this.#dueAt = this.#isHurried ? 0 : this.#env.now() + pauseMs
  }

  async #read(): Promise<void> {
    const isGap = this.#env.now() - this.#lookedAt > GAP_MS
    const before: ReadonlyMap<string, SeenLine> = isGap ? new Map() : this.#lines
    const lines = new Map<string, SeenLine>()
    for await (const line of this.#operator.inspect({ prefix: '' }))
      lines.set(line.resource, seenLine(line, this.#env.wallMs(), before.get(line.resource)))
    const nowMs = this.#env.wallMs()
    const changed: SeenLine[] = []
    for (const line of lines.values()) {
      const known = before.get(line.name)
      if (known === line) continue
      changed.push(line)
      if (known) this.timeline.note(known, line, nowMs)
    }
    for (const line of before.values()) if (!lines.has(line.name)) this.timeline.note(line, null, nowMs)
    // What the viewers know: also after a gap, they must be told what has gone.
    const gone = [...this.#lines.keys()].filter((name) => !lines.has(name))
    this.#lines = lines
    this.#totals = totalsOf(lines.values())
    this.#asOfMs = nowMs
    this.#lookedAt = this.#env.now()
    this.#tell(changed, gone)
  }

  #tell(changed: readonly SeenLine[], gone: readonly string[]): void {
    const wasReported = this.#isReported
    this.#isReported = false
    for (const listener of this.#listeners) {
      if (wasReported) listener.onFine()
      if (wasReported || changed.length > 0 || gone.length > 0) listener.onChange(changed, gone)
    }
  }

  #report(message: string): void {
    if (this.#isReported) return
    this.#isReported = true
    for (const listener of this.#listeners) listener.onTrouble(message)
  }
}

function totalsOf(lines: Iterable<SeenLine>): Totals {
  let [held, waiting, since] = [0, 0, Infinity]
  for (const { claims, holders } of lines) {
    held += holders
    waiting += claims.length - holders
    since = Math.min(since, claims[holders]?.sinceMs ?? Infinity)
  }
  return { held, waiting, waitingSinceMs: since === Infinity ? null : since }
}

function asStoreFailure(error: unknown): HoldfastError {
  if (error instanceof HoldfastError) return error
  const message = error instanceof Error ? error.message : String(error)
  return new HoldfastError('STORE_UNAVAILABLE', `The store failed: ${message}`, { cause: error })
}
