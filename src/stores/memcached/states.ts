import { nextFence } from '../../contract/fence.js'
import type { StateChange, StateOutcome, StateValue } from '../../contract/store.js'
import { contended, explain, NotOursError, stateTooLarge } from './failures.js'
import type { ItemKeys } from './keys.js'
import type { MemcachedNode } from './node.js'
import { currentValue, decodeState, encodeState, type StateItem } from './state-item.js'

const MOST_ATTEMPTS = 50

export interface StatesOptions {
  readonly keys: ItemKeys
  readonly retentionMs: number
  nodeOf(itemKey: string): MemcachedNode
}

interface Found {
  /** 0: there is no item. */
  readonly cas: number
  readonly item: StateItem | null
}

/** States: one item each, changed by compare-and-set. */
export class MemcachedStates {
  readonly #options: StatesOptions

  constructor(options: StatesOptions) {
    this.#options = options
  }

  /** The value, and the CAS number by which a change shows. */
  async read(space: string, key: string): Promise<{ value: StateValue | null; cas: number }> {
    const { itemKey, node } = this.place(space, key)
    try {
      if (!node.isReady) await node.ready()
      const { cas, item } = await find(node, itemKey)
      return { value: currentValue(item, node.now()), cas }
    } catch (error) {
      throw explain(error)
    }
  }

  /** `hasChanged`: watchers are to be told. */
  async write(space: string, change: StateChange): Promise<StateOutcome & { hasChanged: boolean }> {
    try {
      return await this.#write(space, change)
    } catch (error) {
      throw explain(error)
    }
  }

  /** Where a state is. */
  place(space: string, key: string): { itemKey: string; node: MemcachedNode } {
    const itemKey = this.#options.keys.of('s', space, key)
    return { itemKey, node: this.#options.nodeOf(itemKey) }
  }

  async #write(space: string, change: StateChange): Promise<StateOutcome & { hasChanged: boolean }> {
    const { key, expect, value } = change
    const { itemKey, node } = this.place(space, key)
    if (!node.isReady) await node.ready()
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      const { cas, item } = await find(node, itemKey)
      const now = node.now()
      const current = currentValue(item, now)
      if ((current?.version ?? null) !== expect) return { written: false, current, hasChanged: false }
      if (current === null && value === null) return { written: true, current: null, hasChanged: false }
      const version = nextFence({ last: item?.version ?? 0, floor: 0, wallMs: now, block: 1 })
      if (await this.#set(node, itemKey, cas, space, change, version, now))
        return { written: true, current: value === null ? null : { value, version }, hasChanged: true }
    }
    throw contended(`the state '${key}'`)
  }

  async #set(
    node: MemcachedNode,
    itemKey: string,
    cas: number,
    space: string,
    { key, value, retentionMs }: StateChange,
    version: number,
    now: number,
  ): Promise<boolean> {
    const expires = value === null || retentionMs === null ? null : now + retentionMs
    const text = encodeState({ space, key, version, value, expires })
    if (text.length > node.mostBytes) throw stateTooLarge(key, text.length, node.mostBytes)
    const keptMs = value === null ? 0 : retentionMs
    const ttlMs = keptMs === null ? null : keptMs + this.#options.retentionMs
    return (await node.set(itemKey, text, cas, ttlMs)) !== 0
  }
}

async function find(node: MemcachedNode, itemKey: string): Promise<Found> {
  const { status, cas, value } = await node.get(itemKey, 'c v')
  if (status !== 'VA') return { cas: 0, item: null }
  const item = decodeState(value)
  if (!item) throw new NotOursError(itemKey)
  return { cas, item }
}
