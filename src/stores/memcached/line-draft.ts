import type { Push } from '../../contract/store.js'
import { EmbeddedLines, type EmbeddedLinesContext } from '../embedded/lines.js'
import type { ClaimRow, ClaimRowChange, ClaimRows, Pin } from '../embedded/rows.js'
import { LineFullError } from './failures.js'
import { asciiJson, clientJson, infoJson, type LineImage } from './line-item.js'

/**
 * Claims have to leave this part of an item free: rows grow when they are renewed or granted, and
 * these changes must not fail.
 */
const FREE_PART = 1 / 8
/** What a row has beside its texts, about. */
const ROW_BYTES = 110

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
  /** The rows of the image, before the first change. */
  #rows: ReadonlyMap<string, ClaimRow>
  /** The same rows, after it. */
  #changed: Map<string, ClaimRow> | undefined
  #last: number
  #pin: Pin | undefined
  /** Of the item, about: what was removed since it was read or written still counts. */
  #bytes: number
  readonly #mostBytes: number
  #appended: ClaimRow | undefined

  /** `itemBytes`: the largest item of the server. */
  constructor(image: LineImage, clockMs: number, itemBytes = Infinity) {
    // Whole microseconds: exact, and shorter in the item.
    this.#at = Math.max(image.at, Math.floor(clockMs * 1000) / 1000)
    this.#rows = image.rows
    this.#last = image.last
    this.#pin = image.pin
    this.#bytes = image.bytes
    this.#mostBytes = itemBytes * (1 - FREE_PART)
    this.calls = new EmbeddedLines(this, this)
  }

  get image(): LineImage {
    return { at: this.#at, last: this.#last, pin: this.#pin, rows: this.#rows, bytes: this.#bytes }
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

  /** Throws where the line is full. Then nothing is changed that would not be valid by itself. */
  append(row: ClaimRow): void {
    const bytes = this.#bytes + ROW_BYTES + asciiJson(row.id).length + this.#bytesOfTexts(row)
    if (bytes > this.#mostBytes)
      throw new LineFullError(row.resource, this.#rows.size, this.#mostBytes, false)
    this.#bytes = bytes
    this.#appended = row
    this.#change().set(row.id, row)
  }

  prepend(row: ClaimRow): void {
    this.#change(new Map([[row.id, row], ...this.#rows]))
  }

  replace(old: ClaimRow, row: ClaimRow): void {
    const rows = [...this.#rows.values()].map((each) => (each.id === old.id ? row : each))
    this.#change(new Map(rows.map((each) => [each.id, each])))
  }

  update(row: ClaimRow, change: ClaimRowChange): void {
    this.#change().set(row.id, { ...row, ...change })
  }

  remove(row: ClaimRow): void {
    // The only row, mostly: a copy without it is cheaper than its removal from a copy.
    if (this.#rows.size === 1 && this.#rows.has(row.id)) this.#change(new Map())
    else this.#change().delete(row.id)
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

  /** The rows, to be changed. */
  #change(rows = this.#changed ?? new Map(this.#rows)): Map<string, ClaimRow> {
    this.hasChanged = true
    this.#changed = rows
    this.#rows = rows
    return rows
  }

  /** As the item has them, with those of neighbours once. */
  #bytesOfTexts({ client, info }: ClaimRow): number {
    const isKnown = this.#appended?.client === client && this.#appended.info === info
    return isKnown ? 0 : clientJson(client).length + infoJson(info).length
  }
}
