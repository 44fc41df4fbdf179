import { nothing } from '../../base/nothing.js'
import type { StateChange, StateOutcome, StateValue, StateView } from '../../contract/store.js'
import type { Key, KeyPage, KeyValue, Operation } from '../../drivers/etcd/index.js'
import { decode, encode } from '../shared/encoding.js'
import { prefixEnd } from './ranges.js'
import type { EtcdSpace } from './space.js'

const PAGE = 1000

/** The states of one space: one key each, whose last change is its version. */
export class EtcdStates {
  readonly #space: EtcdSpace
  /** By key, what ends its watch. */
  readonly #watches = new Map<string, () => void>()

  constructor(space: EtcdSpace) {
    this.#space = space
  }

  async read(key: string, watch: boolean): Promise<StateValue | null> {
    const { keys, revision } = await this.#space.client.range({ key: this.#key(key) })
    if (watch && !this.#watches.has(key)) this.#watch(key, revision + 1)
    return keys[0] ? toValue(keys[0]) : null
  }

  unwatch(key: string): void {
    this.#watches.get(key)?.()
    this.#watches.delete(key)
  }

  async *list(prefix: string): AsyncIterable<StateView> {
    const { client, names } = this.#space
    const end = prefixEnd(names.states)
    for (let from: Key | null = names.states; from !== null; ) {
      const { keys, next }: KeyPage = await client.page({ key: from, end, limit: PAGE })
      for (const kv of keys) {
        const key = decode(kv.key.slice(names.states.length))
        if (key?.startsWith(prefix)) yield { key, ...toValue(kv) }
      }
      from = next
    }
  }

  async write({ key: name, expect, value, retentionMs }: StateChange): Promise<StateOutcome> {
    const key = this.#key(name)
    const lease = value === null || retentionMs === null ? undefined : await this.#retention(retentionMs)
    const change: Operation =
      value === null ? { type: 'delete', key } : { type: 'put', key, value: encodeValue(value), lease }
    const { succeeded, header, results } = await this.#space.client.transaction({
      compare: [{ key, target: 'mod', is: '=', value: expect ?? 0 }],
      // The lease of the old value has to be read before the change.
      success: [{ type: 'range', key, keysOnly: true }, change],
      failure: [{ type: 'range', key }],
    })
    const found = results[0]?.keys[0]
    this.#revoke(succeeded ? found?.lease : lease)
    if (succeeded)
      return { written: true, current: value === null ? null : { value, version: header.revision } }
    return { written: false, current: found ? toValue(found) : null }
  }

  /** The servers remove the state when this lease ends; nobody renews it. */
  #retention(ms: number): Promise<bigint> {
    return this.#space.client.grant(ms)
  }

  /** No state has that lease any more. By itself it would end only after the retention. */
  #revoke(lease: bigint | undefined): void {
    if (lease) void this.#space.client.revoke(lease).catch(nothing)
  }

  /** The client is told once. */
  #watch(key: string, from: number): void {
    const tell = (): void => {
      this.unwatch(key)
      this.#space.push({ type: 'state', key })
    }
    this.#watches.set(key, nothing)
    const stop = this.#space.client.watch({ key: this.#key(key), from, onEvents: tell, onCompacted: tell })
    this.#watches.set(key, stop)
  }

  #key(key: string): string {
    return `${this.#space.names.states}${encode(key)}`
  }
}

/** Not empty, whatever the value is: etcd knows no difference between empty and none. */
function encodeValue(value: string): string {
  return `=${value}`
}

function toValue({ value, modRevision }: KeyValue): StateValue {
  return { value: String(value).slice(1), version: modRevision }
}
