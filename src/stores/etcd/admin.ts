import { HoldfastError } from '../../base/errors.js'
import type { ClaimView, InspectQuery, LineView } from '../../contract/store.js'
import {
  EtcdError,
  type Key,
  type KeyCompare,
  type KeyPage,
  type KeyValue,
  type Operation,
} from '../../drivers/etcd/index.js'
import { decode } from '../shared/encoding.js'
import { askAgain } from './failures.js'
import { type LinePin, LineRows } from './line-rows.js'
import { prefixEnd } from './ranges.js'
import { type EtcdRow, fenceOf } from './rows.js'
import type { EtcdSpace } from './space.js'

const MOST_CONFLICTS = 20
/** How many keys are read at once. */
const PAGE = 1000
/** etcd knows no empty key. */
const FIRST_KEY = '\0'
const SLASH = '/'.charCodeAt(0)
const AFTER_SLASH = Buffer.of(SLASH + 1)
/** Below the servers' `--max-txn-ops`. */
const MOST_COMPARED = 100

/** What operators do to lines: look, break, cancel, resize. */
export class EtcdAdmin {
  readonly #space: EtcdSpace
  readonly #leftMs: (resource: string, id: string) => number | undefined

  /** `leftMs`: when a claim of this client lapses. */
  constructor(space: EtcdSpace, leftMs: (resource: string, id: string) => number | undefined) {
    this.#space = space
    this.#leftMs = leftMs
  }

  async evict(resource: string, fence: number | null): Promise<ClaimView[]> {
    const { rows } = await this.#space.list(resource)
    const holds = rows.holds.filter((row) => fence === null || fenceOf(row) === fence)
    const views: ClaimView[] = []
    for (const row of holds) {
      if (!(await this.#change([same(row)], [{ type: 'delete', key: row.key }]))) continue
      this.#space.loseOwn(resource, row)
      views.push(this.#view(resource, row, true))
    }
    return views
  }

  async cancel(resource: string, id: string): Promise<ClaimView[]> {
    for (let count = 1; count <= MOST_CONFLICTS; count++) {
      const { rows } = await this.#space.list(resource)
      const row = rows.claims.find(({ value }) => value.id === id)
      if (!row || rows.isHeld(row)) return []
      // It waits as long as these stay.
      const obstacles = rows.obstacles(row)
      if (obstacles.length > MOST_COMPARED) throw tooMany(resource, obstacles.length)
      const compare = [row, ...obstacles].map(same)
      const pin: KeyCompare = {
        key: this.#space.names.pin(resource),
        target: 'mod',
        is: '=',
        value: rows.pinRevision,
      }
      if (await this.#change([...compare, pin], [{ type: 'delete', key: row.key }])) {
        this.#space.loseOwn(resource, row)
        return [this.#view(resource, row, false)]
      }
    }
    throw askAgain(`The line of '${resource}' changed too often`)
  }

  async resize(resource: string, declared: number, capacity: number): Promise<void> {
    const { names } = this.#space
    const key = names.pin(resource)
    for (let count = 1; count <= MOST_CONFLICTS; count++) {
      const { rows, revision } = await this.#space.list(resource)
      const pin = pinOf(rows, declared, capacity)
      const isHere = rows.pinRevision > 0
      if (!pin && !isHere) return
      const compare: KeyCompare[] = [
        { key, target: 'mod', is: '=', value: rows.pinRevision },
        // No claim has come since. That some have left does not matter.
        {
          key: names.claims(resource),
          end: names.lineEnd(resource),
          target: 'mod',
          is: '<',
          value: revision + 1,
        },
      ]
      const change: Operation = pin
        ? { type: 'put', key, value: JSON.stringify(pin) }
        : { type: 'delete', key }
      // A waiter that wants more than the capacity would block the line for ever: its next claim is
      // refused.
      const tooLarge = rows.claims.filter((row) => !rows.isHeld(row) && row.value.permits > capacity)
      const removals = tooLarge.map((row): Operation => ({ type: 'delete', key: row.key }))
      // It still waits, so no hold is removed.
      const next = rows.claims[rows.holdCount]
      const waiting = next ? rows.obstacles(next).slice(0, MOST_COMPARED).map(same) : []
      const isDone = await this.#change(
        [...compare, ...waiting],
        [change, ...removals.slice(0, MOST_COMPARED)],
      )
      if (!isDone) continue
      for (const row of tooLarge.slice(MOST_COMPARED))
        await this.#change([same(row)], [{ type: 'delete', key: row.key }])
      return
    }
    throw askAgain(`The line of '${resource}' changed too often`)
  }

  async *inspect({ prefix, resource }: InspectQuery): AsyncIterable<LineView> {
    const { names } = this.#space
    if (resource !== undefined) {
      const { rows } = await this.#space.list(resource)
      const view = this.#lineView(resource, rows, true)
      if (view && resource.startsWith(prefix)) yield view
      return
    }
    let keys: KeyValue[] = []
    let last: string | null = null
    for await (const kv of this.#keys(names.lines)) {
      const each = names.resourceOf(kv.key)
      if (each === null || !each.startsWith(prefix)) continue
      if (last !== null && each !== last) {
        const view = this.#lineView(last, new LineRows(names, last, keys), false)
        if (view) yield view
        keys = []
      }
      last = each
      keys.push(kv)
    }
    const view = last === null ? null : this.#lineView(last, new LineRows(names, last, keys), false)
    if (view) yield view
  }

  /** One read for each space. On shared lines the space is not in the key. */
  async spaces(): Promise<string[]> {
    const { root, space: own } = this.#space.names
    if (root === null) return [own]
    const spaces: string[] = []
    const end = prefixEnd(root)
    const start = Buffer.byteLength(root)
    for (let key: Key | null = root === '' ? FIRST_KEY : root; key !== null; ) {
      const { next }: KeyPage = await this.#space.client.page({ key, end, limit: 1, keysOnly: true })
      const slash = next?.indexOf(SLASH, start) ?? -1
      key = next
      if (!next || slash < 0) continue
      const space = decode(next.toString('utf8', start, slash))
      if (space !== null) spaces.push(space)
      key = Buffer.concat([next.subarray(0, slash), AFTER_SLASH])
    }
    return spaces
  }

  /**
   * All keys with that prefix, as they were when the first page was read; as they are, if the
   * history is compacted meanwhile.
   */
  async *#keys(prefix: string): AsyncIterable<KeyValue> {
    const end = prefixEnd(prefix)
    let revision = 0
    for (let key: Key | null = prefix === '' ? FIRST_KEY : prefix; key !== null; ) {
      const page: KeyPage = await this.#page(key, end, revision)
      yield* page.keys
      revision ||= page.revision
      key = page.next
    }
  }

  async #page(key: Key, end: Uint8Array, revision: number): Promise<KeyPage> {
    const { client } = this.#space
    try {
      return await client.page({ key, end, limit: PAGE, revision })
    } catch (error) {
      if (!(error instanceof EtcdError) || error.code !== 'OUT_OF_RANGE') throw error
      return client.page({ key, end, limit: PAGE })
    }
  }

  async #change(compare: readonly KeyCompare[], success: readonly Operation[]): Promise<boolean> {
    return (await this.#space.client.transaction({ compare, success })).succeeded
  }

  #lineView(resource: string, rows: LineRows, isAsked: boolean): LineView | null {
    const pin = rows.pin?.isOver ? null : rows.pin
    const isShown = rows.claims.length > 0 || (isAsked && pin !== null)
    if (!isShown || rows.capacity === undefined) return null
    const claims = rows.claims.map((row) => this.#view(resource, row, rows.isHeld(row)))
    const view = { resource, capacity: rows.capacity, claims }
    return pin ? { ...view, declared: pin.declared } : view
  }

  #view(resource: string, row: EtcdRow, isHeld: boolean): ClaimView {
    const { id, permits, info, since, ttlMs } = row.value
    // The difference of two wall clocks, the claimant's and ours: only for people.
    const ageMs = since === 0 ? 0 : Math.max(0, this.#space.env.wallMs() - since)
    const expiresInMs = this.#leftMs(resource, id) ?? ttlMs
    return { id, permits, fence: isHeld ? fenceOf(row) : null, info, ageMs, expiresInMs }
  }
}

function same({ key, modRevision }: EtcdRow): KeyCompare {
  return { key, target: 'mod', is: '=', value: modRevision }
}

function tooMany(resource: string, count: number): HoldfastError {
  const text = `A claim of '${resource}' waits for ${count} others, and etcd cannot compare more than ${MOST_COMPARED}, so it cannot be cancelled safely; abort it in its own process`
  return new HoldfastError('UNSUPPORTED', text, { store: 'etcd', resource })
}

/** null: none is needed, because every claim in the line declares that capacity. */
function pinOf({ claims, holds }: LineRows, declared: number, capacity: number): LinePin | null {
  const isOver = declared === capacity && claims.every(({ value }) => value.capacity === capacity)
  const used = holds.reduce((sum, { value }) => sum + value.permits, 0)
  const last = used > capacity ? holds.at(-1) : undefined
  if (isOver && !last) return null
  return {
    declared,
    capacity,
    ...(last && { heldUpTo: last.createRevision, heldOffset: last.value.offset ?? 0 }),
    ...(isOver && { isOver }),
  }
}
