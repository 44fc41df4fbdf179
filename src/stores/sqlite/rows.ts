import { decodeText, encodeText } from '../../base/text.js'
import type { Cells, SqliteValue } from '../../drivers/sqlite.js'
import type { ClaimRow, ClaimRowChange, ClaimRows, Pin, StateRow, StateRows } from '../embedded/rows.js'
import type { SqliteTransaction } from './lock-file.js'
import type { SqliteStatements } from './statements.js'

/** A row with its place in the line, which is its key. Only rows that were read have one. */
interface PlacedRow extends ClaimRow {
  readonly place: number
}

/** How many rows are read at once behind the first: most reads stop at the first waiting claim. */
const PAGES = [3, 32, 256] as const

/** The rows of one space of an SQLite file. All calls belong to the running transaction. */
export class SqliteRows implements ClaimRows, StateRows {
  readonly #space: string
  readonly #sql: SqliteStatements
  readonly #transaction: SqliteTransaction

  constructor(space: string, sql: SqliteStatements, transaction: SqliteTransaction) {
    this.#space = encodeText(space)
    this.#sql = sql
    this.#transaction = transaction
  }

  first(resource: string): ClaimRow | undefined {
    const cells = this.#sql.claimFirst.get(this.#space, encodeText(resource))
    return cells && toRow(cells)
  }

  *behindFirst(first: ClaimRow): Iterable<ClaimRow> {
    const key = this.#key(first)
    let last = placeOf(first)
    for (let page = 0; ; page += 1) {
      const size = PAGES[page] ?? 256
      const cells = this.#sql.claimsAfter.all(...key, last, size)
      for (const each of cells) {
        const row = toRow(each)
        last = row.place
        yield row
      }
      if (cells.length < size) return
    }
  }

  get(resource: string, id: string): ClaimRow | undefined {
    const cells = this.#sql.claimById.get(this.#space, encodeText(resource), encodeText(id))
    return cells && toRow(cells)
  }

  append(row: ClaimRow): void {
    const key = this.#key(row)
    this.#count(this.#sql.claimAppend.run(...toValues(row), ...key, ...key))
  }

  prepend(row: ClaimRow): void {
    const key = this.#key(row)
    this.#count(this.#sql.claimPrepend.run(...toValues(row), ...key, ...key))
  }

  replace(old: ClaimRow, row: ClaimRow): void {
    this.#count(this.#sql.claimReplace.run(...toValues(row), ...this.#key(old), placeOf(old)))
  }

  update(row: ClaimRow, change: ClaimRowChange): void {
    const { permits, fence, expires, since, block } = { ...row, ...change }
    const values = [permits, fence, expires, since, block, ...this.#key(row), placeOf(row)]
    this.#count(this.#sql.claimUpdate.run(...values))
  }

  remove(row: ClaimRow): void {
    this.#count(this.#sql.claimRemove.run(...this.#key(row), placeOf(row)))
  }

  counter(): number {
    return this.#transaction.counter
  }

  setCounter(counter: number): void {
    this.#transaction.counter = counter
    this.#transaction.hasChanged = true
  }

  pin(resource: string): Pin | undefined {
    // Hardly any file has pins: one query for all of them saves a query for each claim.
    if (!this.#transaction.hasPins) return undefined
    const cells = this.#sql.pinGet.get(this.#space, encodeText(resource))
    return cells && { declared: Number(cells['declared']), capacity: Number(cells['capacity']) }
  }

  setPin(resource: string, pin: Pin | null): void {
    const key = [this.#space, encodeText(resource)]
    this.#count(
      pin ? this.#sql.pinSet.run(...key, pin.declared, pin.capacity) : this.#sql.pinRemove.run(...key),
    )
    if (pin) this.#transaction.hasPins = true
  }

  state(key: string): StateRow | undefined {
    const cells = this.#sql.stateGet.get(this.#space, encodeText(key))
    if (!cells) return undefined
    const { value, version, expires } = cells
    return { value: toText(value), version: Number(version), expires: toNumberOrNull(expires) }
  }

  stateKeys(from: string, most: number): string[] {
    return this.#sql.stateKeys.all(this.#space, encodeText(from), most).map((cells) => toText(cells['key']))
  }

  setState(key: string, row: StateRow | null): void {
    const name = [this.#space, encodeText(key)]
    const changes = row
      ? this.#sql.stateSet.run(...name, encodeText(row.value), row.version, row.expires)
      : this.#sql.stateRemove.run(...name)
    this.#count(changes)
  }

  watch(key: string, client: string): void {
    this.#count(
      this.#sql.watcherAdd.run(this.#space, encodeText(key), encodeText(client), this.#transaction.now),
    )
  }

  takeWatchers(key: string): string[] {
    const name = [this.#space, encodeText(key)]
    const watchers = this.#sql.watcherOfKey.all(...name).map((cells) => toText(cells['client']))
    if (watchers.length > 0) this.#count(this.#sql.watcherTake.run(...name))
    return watchers
  }

  /** The first resource with a claim, at or after `name` in the order of the index. */
  resourceFrom(name: string): string | undefined {
    const found = this.#sql.resourceFrom.get(this.#space, encodeText(name))
    return found && toText(found['resource'])
  }

  #key(row: ClaimRow): [string, string] {
    return [this.#space, encodeText(row.resource)]
  }

  #count(changes: number): number {
    if (changes > 0) this.#transaction.hasChanged = true
    return changes
  }
}

function toRow(cells: Cells): PlacedRow {
  return {
    place: Number(cells['place']),
    resource: toText(cells['resource']),
    id: toText(cells['id']),
    client: toText(cells['client']),
    permits: Number(cells['permits']),
    capacity: Number(cells['capacity']),
    fence: toNumberOrNull(cells['fence']),
    expires: Number(cells['expires']),
    maxHoldMs: toNumberOrNull(cells['max_hold_ms']),
    floor: Number(cells['floor']),
    block: Number(cells['block']),
    since: Number(cells['since']),
    info: toText(cells['info']),
  }
}

/** In the order of the columns in `claimAppend`, `claimPrepend` and `claimReplace`. */
function toValues(row: ClaimRow): SqliteValue[] {
  const { permits, capacity, fence, expires, maxHoldMs, floor, block, since } = row
  const texts = [encodeText(row.id), encodeText(row.client)]
  return [...texts, permits, capacity, fence, expires, maxHoldMs, floor, block, since, encodeText(row.info)]
}

function placeOf(row: ClaimRow): number {
  return (row as PlacedRow).place
}

function toText(value: SqliteValue | undefined): string {
  return decodeText(String(value))
}

function toNumberOrNull(value: SqliteValue | undefined): number | null {
  return value === null || value === undefined ? null : Number(value)
}
