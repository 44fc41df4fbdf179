import type { Cancel } from '../../base/env.js'
import type { VirtualProcess } from './process.js'

/** Something that will happen at a moment of true time. */
export interface VirtualEvent {
  readonly timeMs: number
  /** Events of one moment happen in the order in which they were planned. */
  readonly order: number
  /**
   * The process it happens in. It waits while that process is paused, and never happens after its
   * death.
   */
  readonly owner: VirtualProcess | null
  readonly kind: 'timer' | 'delivery'
  /** null: cancelled. */
  run: (() => void) | null
}

/** The events to come: a binary heap ordered by time, then by planning. */
export class EventQueue {
  #heap: VirtualEvent[] = []
  #planned = 0
  #cancelled = 0

  add(event: Omit<VirtualEvent, 'order'>): Cancel {
    const { timeMs, owner, kind, run } = event
    const entry: VirtualEvent = { timeMs, order: this.#planned++, owner, kind, run }
    this.#heap.push(entry)
    this.#rise(this.#heap.length - 1)
    return () => {
      if (entry.run === null) return
      entry.run = null
      this.#cancelled++
      this.#sweep()
    }
  }

  /** Takes out the first event that is due by then. */
  take(untilMs: number): VirtualEvent | undefined {
    for (;;) {
      const first = this.#heap[0]
      if (!first || first.timeMs > untilMs) return undefined
      this.#removeFirst()
      if (first.run) return first
      this.#cancelled--
    }
  }

  #removeFirst(): void {
    const last = this.#heap.pop()
    if (!last || this.#heap.length === 0) return
    this.#heap[0] = last
    this.#sink(0)
  }

  /** Far deadlines are mostly cancelled long before they are due, and would pile up. */
  #sweep(): void {
    if (this.#cancelled < 1000 || this.#cancelled * 2 < this.#heap.length) return
    this.#heap = this.#heap.filter((event) => event.run !== null).sort(inOrder)
    this.#cancelled = 0
  }

  #rise(start: number): void {
    const heap = this.#heap
    const event = heap[start]
    if (!event) return
    let index = start
    while (index > 0) {
      const above = (index - 1) >> 1
      const parent = heap[above]
      if (!parent || inOrder(parent, event) <= 0) break
      heap[index] = parent
      index = above
    }
    heap[index] = event
  }

  #sink(start: number): void {
    const heap = this.#heap
    const event = heap[start]
    if (!event) return
    let index = start
    for (;;) {
      const left = 2 * index + 1
      const [a, b] = [heap[left], heap[left + 1]]
      const child = b && a && inOrder(b, a) < 0 ? b : a
      if (!child || inOrder(event, child) <= 0) break
      heap[index] = child
      index = child === b ? left + 1 : left
    }
    heap[index] = event
  }
}

function inOrder(a: VirtualEvent, b: VirtualEvent): number {
  return a.timeMs - b.timeMs || a.order - b.order
}
