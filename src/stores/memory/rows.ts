import type { ClaimRow, ClaimRowChange, ClaimRows, Pin, StateRow, StateRows } from '../embedded/rows.js'

/** A line in memory, by id. Map keeps insertion order, which is the order of arrival. */
type Line = Map<string, ClaimRow>

const FEW_STATES = 100

/** The rows of one space of a memory store. */
export class MemoryRows implements ClaimRows, StateRows {
  readonly #lines = new Map<string, Line>()
  readonly #pins = new Map<string, Pin>()
  readonly #states = new Map<string, StateRow>()
  readonly #watchers = new Map<string, Set<string>>()
  readonly #now: () => number
  #counter = 0
  /** At so many states, those that have ended are looked for. */
  #crowdedAt = FEW_STATES

  constructor(now: () => number) {
    this.#now = now
  }

  resources(): IterableIterator<string> {
    return this.#lines.keys()
  }

  line(resource: string): Iterable<ClaimRow> {
    return this.#lines.get(resource)?.values() ?? []
  }

  get(resource: string, id: string): ClaimRow | undefined {
    return this.#lines.get(resource)?.get(id)
  }

  append(row: ClaimRow): void {
    const line = this.#lines.get(row.resource) ?? new Map()
    this.#lines.set(row.resource, line.set(row.id, row))
  }

  prepend(row: ClaimRow): void {
    this.#rebuild(row.resource, [row, ...this.line(row.resource)])
  }

  replace(old: ClaimRow, row: ClaimRow): void {
    this.#rebuild(
      row.resource,
      [...this.line(row.resource)].map((each) => (each.id === old.id ? row : each)),
    )
  }

  update(row: ClaimRow, change: ClaimRowChange): void {
    this.#lines.get(row.resource)?.set(row.id, { ...row, ...change })
  }

  remove(row: ClaimRow): void {
    const line = this.#lines.get(row.resource)
    line?.delete(row.id)
    if (line?.size === 0) this.#lines.delete(row.resource)
  }

  counter(): number {
    return this.#counter
  }

  bump(counter: number): void {
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

  /** Rarely enough that the search is paid for by the states that were written since the last one. */
  #dropEndedStates(): void {
    const now = this.#now()
    for (const [key, { expires }] of this.#states)
      if (expires !== null && expires <= now) this.#states.delete(key)
    this.#crowdedAt = this.#states.size * 2 + FEW_STATES
  }

  #rebuild(resource: string, rows: readonly ClaimRow[]): void {
    this.#lines.set(resource, new Map(rows.map((row) => [row.id, row])))
  }
}
