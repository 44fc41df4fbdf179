import { lineOf } from '../embedded/front.js'
import type { ClaimRow, ClaimRowChange, ClaimRows, Pin, StateRow, StateRows } from '../embedded/rows.js'

/**
 * A line of one claim is that claim: most locks never have more. A longer line is a map by id, in
 * line order.
 */
type MemoryLine = ClaimRow | Map<string, ClaimRow>

const FEW_STATES = 100

/** The rows of one space of a memory store. */
export class MemoryRows implements ClaimRows, StateRows {
  readonly #lines = new Map<string, MemoryLine>()
  readonly #pins = new Map<string, Pin>()
  readonly #states = new Map<string, StateRow>()
  readonly #watchers = new Map<string, Set<string>>()
  readonly #now: () => number
  #counter = 0
  /** At this number of states, the ended ones are removed. */
  #crowdedAt = FEW_STATES

  constructor(now: () => number) {
    this.#now = now
  }

  resources(): IterableIterator<string> {
    return this.#lines.keys()
  }

  first(resource: string): ClaimRow | undefined {
    const line = this.#lines.get(resource)
    return line instanceof Map ? line.values().next().value : line
  }

  behindFirst(first: ClaimRow): Iterable<ClaimRow> {
    const line = this.#lines.get(first.resource)
    if (!(line instanceof Map)) return []
    const rows = line.values()
    rows.next()
    return rows
  }

  get(resource: string, id: string): ClaimRow | undefined {
    const line = this.#lines.get(resource)
    if (line instanceof Map) return line.get(id)
    return line?.id === id ? line : undefined
  }

  append(row: ClaimRow): void {
    const line = this.#lines.get(row.resource)
    if (line === undefined) this.#lines.set(row.resource, row)
    else if (line instanceof Map) line.set(row.id, row)
    else this.#setLine(row.resource, [line, row])
  }

  prepend(row: ClaimRow): void {
    this.#setLine(row.resource, [row, ...lineOf(this, row.resource)])
  }

  replace(old: ClaimRow, row: ClaimRow): void {
    const line = [...lineOf(this, row.resource)]
    this.#setLine(
      row.resource,
      line.map((each) => (each.id === old.id ? row : each)),
    )
  }

  update(row: ClaimRow, change: ClaimRowChange): void {
    const changed = { ...row, ...change }
    const line = this.#lines.get(row.resource)
    if (line instanceof Map) line.set(row.id, changed)
    else this.#lines.set(row.resource, changed)
  }

  remove({ resource, id }: ClaimRow): void {
    const line = this.#lines.get(resource)
    if (line instanceof Map) {
      line.delete(id)
      if (line.size > 0) return
    } else if (line?.id !== id) return
    this.#lines.delete(resource)
  }

  counter(): number {
    return this.#counter
  }

  setCounter(counter: number): void {
    this.#counter = counter
  }

  pin(resource: string): Pin | undefined {
    return this.#pins.get(resource)
  }

  setPin(resource: string, pin: Pin | null): void {
    if (pin) this.#pins.set(resource, pin)
    else this.#pins.delete(resource)
  }

  state(key: string): StateRow | undefined {
    return this.#states.get(key)
  }

  stateKeys(from: string, most: number): string[] {
    const keys = [...this.#states.keys()].filter((key) => key >= from)
    return keys.sort().slice(0, most)
  }

  setState(key: string, row: StateRow | null): void {
    if (row) this.#states.set(key, row)
    else this.#states.delete(key)
    if (this.#states.size >= this.#crowdedAt) this.#dropEndedStates()
  }

  watch(key: string, client: string): void {
    const watchers = this.#watchers.get(key) ?? new Set()
    this.#watchers.set(key, watchers.add(client))
  }

  takeWatchers(key: string): string[] {
    const watchers = this.#watchers.get(key) ?? []
    this.#watchers.delete(key)
    return [...watchers]
  }

  unwatch(key: string, client: string): void {
    const watchers = this.#watchers.get(key)
    if (watchers?.delete(client) && watchers.size === 0) this.#watchers.delete(key)
  }

  forgetWatcher(client: string): void {
    for (const key of this.#watchers.keys()) this.unwatch(key, client)
  }

  /** Runs so rarely that its cost per written state is constant. */
  #dropEndedStates(): void {
    const now = this.#now()
    for (const [key, { expires }] of this.#states)
      if (expires !== null && expires <= now) this.#states.delete(key)
    this.#crowdedAt = this.#states.size * 2 + FEW_STATES
  }

  #setLine(resource: string, rows: readonly ClaimRow[]): void {
    this.#lines.set(resource, new Map(rows.map((row) => [row.id, row])))
  }
}
