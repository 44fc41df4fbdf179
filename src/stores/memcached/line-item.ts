import type { ClaimRow, Pin } from '../embedded/rows.js'

/** A line as its item has it. Times are the server's milliseconds. */
export interface LineImage {
  /** When it was last changed. The line's time never goes back behind it. */
  readonly at: number
  /** The last fence that was given. */
  readonly last: number
  readonly pin: Pin | undefined
  /** By id, in the order of the line. */
  readonly rows: ReadonlyMap<string, ClaimRow>
  /** The size of its item, when it was last read or written. */
  readonly bytes: number
}

export const EMPTY_LINE: LineImage = { at: 0, last: 0, pin: undefined, rows: new Map(), bytes: 0 }

const FORMAT = 1
/** Printable ASCII in which JSON escapes nothing, as in ids. */
const PLAIN = /^[ !#-[\]-~]*$/

type EncodedRow = [
  id: string,
  /** Places in the lists of clients and infos, which many rows have in common. */
  client: number,
  info: number,
  permits: number,
  capacity: number,
  fence: number | null,
  expires: number,
  since: number,
  maxHoldMs: number | null,
  floor: number,
  block: number,
]

const ROW_PARTS = 11

type EncodedLine = [
  format: number,
  space: string,
  resource: string,
  at: number,
  last: number,
  pin: [declared: number, capacity: number] | null,
  clients: string[],
  infos: string[],
  rows: EncodedRow[],
]

/** The part of the item that never changes. */
export function encodeHead(space: string, resource: string): string {
  return `[${FORMAT},${asciiJson(space)},${asciiJson(resource)},`
}

export function encodeLine(head: string, { at, last, pin, rows }: Omit<LineImage, 'bytes'>): string {
  const clients = new Numbered(clientJson)
  const infos = new Numbered(infoJson)
  let encoded = ''
  for (const row of rows.values()) {
    const { id, permits, capacity, fence, since, maxHoldMs, floor, block } = row
    const texts = `${asciiJson(id)},${clients.numberOf(row.client)},${infos.numberOf(row.info)}`
    const expires = Math.min(row.expires, Number.MAX_SAFE_INTEGER)
    const comma = encoded === '' ? '' : ','
    // In the order of EncodedRow.
    encoded += `${comma}[${texts},${permits},${capacity},${fence},${expires},${since},${maxHoldMs},${floor},${block}]`
  }
  const pinned = pin ? `[${pin.declared},${pin.capacity}]` : 'null'
  return `${head}${at},${last},${pinned},[${clients.list}],[${infos.list}],[${encoded}]]`
}

/** null: another program wrote the item. */
export function decodeLine(text: string): (LineImage & { space: string; resource: string }) | null {
  const item = parseItem(text)
  if (!item || !isLine(item)) return null
  const [, space, resource, at, last, pinned, clients, infos, encoded] = item
  const rows = new Map<string, ClaimRow>()
  for (const [
    id,
    client,
    info,
    permits,
    capacity,
    fence,
    expires,
    since,
    maxHoldMs,
    floor,
    block,
  ] of encoded) {
    rows.set(id, {
      resource,
      id,
      client: clients[client] ?? '',
      permits,
      capacity,
      fence,
      expires,
      maxHoldMs,
      floor,
      block,
      since,
      info: infos[info] ?? '',
    })
  }
  const pin = pinned ? { declared: pinned[0], capacity: pinned[1] } : undefined
  return { space, resource, at, last, pin, rows, bytes: text.length }
}

function isLine(item: unknown[]): item is EncodedLine {
  const [, space, resource, at, last, pin, clients, infos, rows] = item
  return (
    [space, resource].every(isText) &&
    [at, last].every(isNumber) &&
    (pin === null || isListOf(isNumber, pin)) &&
    isListOf(isText, clients) &&
    isListOf(isText, infos) &&
    isListOf(isRow, rows)
  )
}

function isRow(row: unknown): boolean {
  if (!Array.isArray(row) || row.length < ROW_PARTS) return false
  return row.every((part, place) => (place === 0 ? isText(part) : part === null || isNumber(part)))
}

function isListOf(isPart: (part: unknown) => boolean, list: unknown): boolean {
  return Array.isArray(list) && list.every((part) => isPart(part))
}

export function isText(part: unknown): part is string {
  return typeof part === 'string'
}

export function isNumber(part: unknown): part is number {
  return typeof part === 'number'
}

/** The array that an item is; null: another program wrote it. */
export function parseItem(text: string): unknown[] | null {
  try {
    const item = JSON.parse(text)
    return Array.isArray(item) && item[0] === FORMAT ? item : null
  } catch {
    return null
  }
}

/** JSON in ASCII: an item has as many bytes as characters. */
export function asciiJson(value: unknown): string {
  if (typeof value === 'string' && PLAIN.test(value)) return `"${value}"`
  return JSON.stringify(value).replace(/[\u0080-\uffff]/g, escaped)
}

function escaped(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
}

export const clientJson = remembering()
export const infoJson = remembering()

/** `asciiJson` that remembers its last text: a process mostly writes its own client and info. */
function remembering(): (text: string) => string {
  let last = ''
  let json = '""'
  return (text) => {
    if (text !== last) json = asciiJson(text)
    last = text
    return json
  }
}

/** Texts by number, each once. */
class Numbered {
  /** As the elements of a JSON array. */
  list = ''
  #last: string | undefined
  #count = 0
  #numbers: Map<string, number> | undefined
  readonly #jsonOf: (text: string) => string

  constructor(jsonOf: (text: string) => string) {
    this.#jsonOf = jsonOf
  }

  numberOf(text: string): number {
    // Most rows have the text of the row before them.
    if (text === this.#last) return this.#numbers?.get(text) ?? this.#count - 1
    if (this.#last !== undefined) this.#numbers ??= new Map([[this.#last, 0]])
    this.#last = text
    const known = this.#numbers?.get(text)
    if (known !== undefined) return known
    this.#numbers?.set(text, this.#count)
    this.list += this.#count === 0 ? this.#jsonOf(text) : `,${this.#jsonOf(text)}`
    return this.#count++
  }
}
