import type { Cancel, Env } from '../../base/env.js'
import { LONGEST_OF_ALL_MS, waiterMs } from '../shared/poll-interval.js'
import type { MemcachedLine } from './line.js'

/** How often a line is polled in which clients of this process only hold: a hold may be revoked. */
const HOLDS_MS = 1000
/** With more lines of waiters, each is polled less often. */
const MANY_LINES = 16
/** With more holds, they are polled less often. */
const MANY_HOLDS = 1000
const LONGEST_HOLDS_MS = 5000
const AFTER_FAILURE_MS = 250

export interface LinePollerContext {
  readonly env: Env
  /** The line was looked at: other clients may have changed it. */
  onSeen(line: MemcachedLine): void
  /** A hold ahead of our claim has lapsed, and no other client is nearer to the front. */
  onLapse(line: MemcachedLine): void
}

/**
 * Looks whether other clients have changed the lines in which ours wait or hold. Only an
 * accelerator, as the pushes of other stores are: the pulse asks the same.
 */
export class LinePoller {
  readonly #context: LinePollerContext
  /** Lines in which we wait, with their timers. */
  readonly #waiting = new Map<MemcachedLine, Cancel>()
  readonly #holding = new Set<MemcachedLine>()
  #cancelHoldTimer: Cancel | undefined
  #isClosed = false

  constructor(context: LinePollerContext) {
    this.#context = context
  }

  /** Our claims in that line have changed, or the line has. */
  update(line: MemcachedLine): void {
    if (this.#isClosed) return
    if (line.own.size === 0) {
      // The next poll of the holds forgets it, unless it is held again by then.
      this.#stopWaiting(line)
    } else if (isWaiting(line)) {
      this.#holding.delete(line)
      this.#schedule(line, this.#intervalMs(line))
    } else {
      this.#stopWaiting(line)
      this.#holding.add(line)
      this.#cancelHoldTimer ??= this.#startHoldTimer()
    }
  }

  /** A claim of ours is new at the end of that line: that changes no interval. */
  start(line: MemcachedLine): void {
    if (!this.#waiting.has(line)) this.update(line)
  }

  open(): void {
    this.#isClosed = false
  }

  close(): void {
    this.#isClosed = true
    this.#cancelHoldTimer?.()
    this.#cancelHoldTimer = undefined
    for (const line of [...this.#waiting.keys()]) this.#stopWaiting(line)
    this.#holding.clear()
  }

  #stopWaiting(line: MemcachedLine): void {
    const cancel = this.#waiting.get(line)
    if (!cancel) return
    cancel()
    this.#waiting.delete(line)
  }

  #schedule(line: MemcachedLine, ms: number): void {
    this.#stopWaiting(line)
    const poll = (): void => void this.#pollWaiting(line)
    this.#waiting.set(line, this.#context.env.timer(ms, poll, { keepAlive: false }))
  }

  #intervalMs(line: MemcachedLine): number {
    const { env } = this.#context
    const { place, waiters } = standing(line)
    const ms = waiterMs(place, env.now() - line.movedAt, waiters)
    const ofManyMs = ms * Math.max(1, this.#waiting.size / MANY_LINES)
    return Math.min(LONGEST_OF_ALL_MS, ofManyMs) * (0.8 + env.random() * 0.4)
  }

  /** Never rejects. */
  async #pollWaiting(line: MemcachedLine): Promise<void> {
    const isAnswered = await this.#look(line)
    // A call may have ended the wait, or started the next timer.
    if (this.#isClosed || !this.#waiting.has(line)) return
    this.#schedule(line, isAnswered ? this.#intervalMs(line) : AFTER_FAILURE_MS)
  }

  /** false: the server did not answer. Calls that a caller waits for report that. */
  async #look(line: MemcachedLine): Promise<boolean> {
    // A batch of ours that is under way learns more than a poll.
    if (line.queue) return true
    const { turn } = line
    try {
      if (!line.node.isReady) await line.node.ready()
      const { status, cas } = await line.node.get(line.key, 'c')
      if (line.turn !== turn) return true
      if (status === 'EN' || cas !== line.cas) {
        const sight = await line.read()
        if (line.turn !== turn) return true
        line.see(sight)
      }
      this.#context.onSeen(line)
      this.#lookForLapse(line)
      return true
    } catch {
      return false
    }
  }

  #lookForLapse(line: MemcachedLine): void {
    const [first] = line.image?.rows.values() ?? []
    const isOver = first !== undefined && first.expires <= line.node.now()
    if (!isOver || line.lapsedAt === first.expires || standing(line).place !== 1) return
    line.lapsedAt = first.expires
    this.#context.onLapse(line)
  }

  #startHoldTimer(): Cancel {
    const ms = HOLDS_MS * Math.max(1, this.#holding.size / MANY_HOLDS)
    return this.#context.env.timer(Math.min(LONGEST_HOLDS_MS, ms), () => void this.#pollHolds(), {
      keepAlive: false,
    })
  }

  async #pollHolds(): Promise<void> {
    for (const line of this.#holding) if (line.own.size === 0) this.#holding.delete(line)
    await Promise.all([...this.#holding].map((line) => this.#look(line)))
    this.#cancelHoldTimer = this.#isClosed || this.#holding.size === 0 ? undefined : this.#startHoldTimer()
  }
}

/** Whether a claim of ours waits for one of another process: those of ours are told directly. */
function isWaiting({ own, image }: MemcachedLine): boolean {
  let waits = false
  for (const { isHeld } of own.values()) waits ||= !isHeld
  if (!waits || !image) return waits
  for (const id of image.rows.keys()) if (!own.has(id)) return true
  return false
}

/** The place of our first waiting claim, from 1 on, and an estimate of how many clients wait. */
function standing({ own, image, node }: MemcachedLine): { place: number; waiters: number } {
  const now = node.now()
  let [place, waiting, ours] = [1, 0, 0]
  for (const { id, fence, expires } of image?.rows.values() ?? []) {
    if (fence !== null || expires <= now) continue
    waiting++
    if (own.has(id)) ours++
    else if (ours === 0) place++
  }
  return { place, waiters: waiting / Math.max(1, ours) }
}
