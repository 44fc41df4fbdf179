import type { Pin, Row, RowChange, Rows, StateRow, StateRows } from '../../contract/rows.js'

/** A line in memory. Map keeps insertion order, which is the order of arrival. */
interface Line {
  rows: Map<string, Row>
  /** No row lapses before this moment, so that a long line is not searched at every call. */
  nothingLapsesBefore: number
}

/** The rows of one space of a memory store. */
export class MemoryRows implements Rows, StateRows {
  readonly #lines = new Map<string, Line>()
  readonly #pins = new Map<string, Pin>()
  readonly #states = new Map<string, StateRow>()
  readonly #watchers = new Map<string, Set<string>>()
  #counter = 0

  resources(): IterableIterator<string> {
    return this.#lines.keys()
  }

  line(resource: string): Iterable<Row> {
    return this.#lines.get(resource)?.rows.values() ?? []
  }

  get(resource: string, id: string): Row | undefined {
    return this.#lines.get(resource)?.rows.get(id)
  }

  dropLapsed(resource: string, now: number): boolean {
    const line = this.#lines.get(resource)
    if (!line || now < line.nothingLapsesBefore) return false
    const sizeBefore = line.rows.size
    line.nothingLapsesBefore = Infinity
    for (const row of line.rows.values()) {
      if (row.expires <= now) line.rows.delete(row.id)
      else noteExpiry(line, row)
    }
    const hasDropped = line.rows.size < sizeBefore
    this.#forgetIfEmpty(resource, line)
    return hasDropped
  }

  append(row: Row): void {
    const line = this.#lines.get(row.resource) ?? { rows: new Map(), nothingLapsesBefore: Infinity }
    this.#lines.set(row.resource, line)
    line.rows.set(row.id, row)
    noteExpiry(line, row)
  }

  prepend(row: Row): void {
    const behind = [...this.line(row.resource)]
    this.#lines.delete(row.resource)
    for (const each of [row, ...behind]) this.append(each)
  }

  replace(old: Row, row: Row): void {
    const rows = [...this.line(old.resource)]
    this.#lines.delete(old.resource)
    for (const each of rows) this.append(each.id === old.id ? row : each)
  }

  update(row: Row, change: RowChange): void {
    const line = this.#lines.get(row.resource)
    if (!line) return
    const updated = { ...row, ...change }
    line.rows.set(row.id, updated)
    noteExpiry(line, updated)
  }

  remove(row: Row): void {
    const line = this.#lines.get(row.resource)
    if (!line) return
    line.rows.delete(row.id)
    this.#forgetIfEmpty(row.resource, line)
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

  forgetWatcher(client: string): void {
    for (const [key, watchers] of this.#watchers) {
      if (watchers.delete(client) && watchers.size === 0) this.#watchers.delete(key)
    }
  }

  #forgetIfEmpty(resource: string, line: Line): void {
    if (line.rows.size === 0) this.#lines.delete(resource)
  }
}

function noteExpiry(line: Line, row: Row): void {
  line.nothingLapsesBefore = Math.min(line.nothingLapsesBefore, row.expires)
}
