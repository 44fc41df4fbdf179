import type { Push } from '../../contract/store.js'
import { EmbeddedLines, type EmbeddedLinesContext } from '../embedded/lines.js'
import type { ClaimRow, ClaimRowChange, ClaimRows, Pin } from '../embedded/rows.js'
import type { LineImage } from './line-item.js'

/** News for one of the clients in a line. */
export interface LineNews {
  readonly client: string
  readonly news: Push
}

/** A copy of one line, which calls change before it is written as a whole. */
export class LineDraft implements ClaimRows, EmbeddedLinesContext {
  readonly calls: EmbeddedLines
  readonly news: LineNews[] = []
  hasChanged = false
  readonly #at: number
  #rows: Map<string, ClaimRow>
  #last: number
  #pin: Pin | undefined

  constructor(image: LineImage, clockMs: number) {
    // Whole microseconds: exact, and shorter in the item.
    this.#at = Math.max(image.at, Math.floor(clockMs * 1000) / 1000)
    this.#rows = new Map(image.rows)
    this.#last = image.last
    this.#pin = image.pin
    this.calls = new EmbeddedLines(this, this)
  }

  get image(): LineImage {
    return { at: this.#at, last: this.#last, pin: this.#pin, rows: this.#rows }
  }

  now(): number {
    return this.#at
  }

  wallMs(): number {
    return this.#at
  }

  tell(client: string, news: Push): void {
    this.news.push({ client, news })
  }

  first(): ClaimRow | undefined {
    return this.#rows.values().next().value
  }

  behindFirst(): Iterable<ClaimRow> {
    const rows = this.#rows.values()
    rows.next()
    return rows
  }

  get(_resource: string, id: string): ClaimRow | undefined {
    return this.#rows.get(id)
  }

  append(row: ClaimRow): void {
    this.hasChanged = true
    this.#rows.set(row.id, row)
  }

  prepend(row: ClaimRow): void {
    this.hasChanged = true
    this.#rows = new Map([[row.id, row], ...this.#rows])
  }

  replace(old: ClaimRow, row: ClaimRow): void {
    this.hasChanged = true
    const rows = [...this.#rows.values()].map((each) => (each.id === old.id ? row : each))
    this.#rows = new Map(rows.map((each) => [each.id, each]))
  }

  update(row: ClaimRow, change: ClaimRowChange): void {
    this.hasChanged = true
    this.#rows.set(row.id, { ...row, ...change })
  }

  remove(row: ClaimRow): void {
    this.hasChanged = true
    this.#rows.delete(row.id)
  }

  counter(): number {
    return this.#last
  }

  setCounter(counter: number): void {
    this.hasChanged = true
    this.#last = counter
  }

  pin(): Pin | undefined {
    return this.#pin
  }

  setPin(_resource: string, pin: Pin | null): void {
    this.hasChanged = true
    this.#pin = pin ?? undefined
  }
}
