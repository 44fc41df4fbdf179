import type { Cancel, Env } from '../../base/env.js'
import { PLACE_OF_STATES, waiterMs } from '../shared/poll-interval.js'
import type { MemcachedNode } from './node.js'

const AFTER_FAILURE_MS = 250

/** Who hears of a change. */
export interface StateWatcher {
  onState(key: string): void
}

interface WatchedState {
  readonly key: string
  readonly node: MemcachedNode
  /** Each with the CAS number of the value that it has read; 0: there was none. */
  readonly watchers: Map<StateWatcher, number>
}

/** Polls the watched states of a store value. Each watcher is told once. */
export class StateWatches {
  readonly #env: Env
  /** By the key of the item. */
  readonly #watched = new Map<string, WatchedState>()
  #movedAt = 0
  #cancel: Cancel | undefined

  constructor(env: Env) {
    this.#env = env
  }

  add(itemKey: string, node: MemcachedNode, key: string, cas: number, watcher: StateWatcher): void {
    const state = this.#watched.get(itemKey) ?? { key, node, watchers: new Map() }
    this.#watched.set(itemKey, state)
    state.watchers.set(watcher, cas)
    this.#moved()
  }

  remove(itemKey: string, watcher: StateWatcher): void {
    const watchers = this.#watched.get(itemKey)?.watchers
    if (watchers?.delete(watcher) && watchers.size === 0) this.#watched.delete(itemKey)
  }

  removeAll(watcher: StateWatcher): void {
    for (const itemKey of [...this.#watched.keys()]) this.remove(itemKey, watcher)
  }

  /** The state has another CAS number now: tells the watchers that have read another one. */
  changed(itemKey: string, cas?: number): void {
    const state = this.#watched.get(itemKey)
    for (const [watcher, known] of [...(state?.watchers ?? [])]) {
      if (known === cas) continue
      this.remove(itemKey, watcher)
      this.#movedAt = this.#env.now()
      watcher.onState(state?.key ?? '')
    }
  }

  close(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#watched.clear()
  }

  #moved(): void {
    this.#movedAt = this.#env.now()
    this.#schedule(this.#intervalMs())
  }

  #schedule(ms: number): void {
    this.#cancel?.()
    this.#cancel = this.#env.timer(ms, () => void this.#poll(), { keepAlive: false })
  }

  #intervalMs(): number {
    const ms = waiterMs(PLACE_OF_STATES, this.#env.now() - this.#movedAt)
    return ms * (0.8 + this.#env.random() * 0.4)
  }

  /** Never rejects: the engine looks again by itself, and reports what fails. */
  async #poll(): Promise<void> {
    const looks = [...this.#watched].map(async ([itemKey, { node }]) => {
      const { cas } = await node.get(itemKey, 'c')
      this.changed(itemKey, cas)
    })
    const outcomes = await Promise.allSettled(looks)
    if (this.#watched.size === 0) return
    const hasFailed = outcomes.some(({ status }) => status === 'rejected')
    this.#schedule(hasFailed ? AFTER_FAILURE_MS : this.#intervalMs())
  }
}
