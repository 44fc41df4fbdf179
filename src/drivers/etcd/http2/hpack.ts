import { Code, Http2Error } from './errors.js'
import { decodeHuffman } from './huffman.js'

export type Header = readonly [name: string, value: string]
export type HeaderMap = ReadonlyMap<string, string>

/** The headers that have a number, from 1 on (RFC 7541, appendix A). */
const STATIC: readonly Header[] = [
  [':authority', ''],
  [':method', 'GET'],
  [':method', 'POST'],
  [':path', '/'],
  [':path', '/index.html'],
  [':scheme', 'http'],
  [':scheme', 'https'],
  ...['200', '204', '206', '304', '400', '404', '500'].map((status) => [':status', status] as const),
  ['accept-charset', ''],
  ['accept-encoding', 'gzip, deflate'],
  ...[
    ...['accept-language', 'accept-ranges', 'accept', 'access-control-allow-origin', 'age', 'allow'],
    ...['authorization', 'cache-control', 'content-disposition', 'content-encoding', 'content-language'],
    ...['content-length', 'content-location', 'content-range', 'content-type', 'cookie', 'date', 'etag'],
    ...['expect', 'expires', 'from', 'host', 'if-match', 'if-modified-since', 'if-none-match', 'if-range'],
    ...['if-unmodified-since', 'last-modified', 'link', 'location', 'max-forwards', 'proxy-authenticate'],
    ...['proxy-authorization', 'range', 'referer', 'refresh', 'retry-after', 'server', 'set-cookie'],
    ...['strict-transport-security', 'transfer-encoding', 'user-agent', 'vary', 'via', 'www-authenticate'],
  ].map((name) => [name, ''] as const),
]

const INDEXED = 0x80
const LITERAL_INDEXED = 0x40
const TABLE_SIZE = 0x20
const HUFFMAN = 0x80
/** More bytes than this would be a number above 2^28, which nothing here needs. */
const MOST_NUMBER_BYTES = 5

/** Encodes headers without a dynamic table: the same headers always give the same bytes. */
export function encodeHeaders(headers: readonly Header[]): Buffer {
  return Buffer.concat(headers.flatMap(encodeHeader))
}

/** Tells the server that no dynamic table is used. Stands before the first headers. */
export const NO_TABLE = Buffer.of(TABLE_SIZE)

function encodeHeader([name, value]: Header): Buffer[] {
  const whole = STATIC.findIndex(([known, knownValue]) => known === name && knownValue === value)
  if (whole >= 0 && value !== '') return [encodeNumber(INDEXED, 7, whole + 1)]
  const index = STATIC.findIndex(([known]) => known === name) + 1
  return [encodeNumber(0, 4, index), ...(index === 0 ? encodeText(name) : []), ...encodeText(value)]
}

function encodeText(text: string): Buffer[] {
  const bytes = Buffer.from(text)
  return [encodeNumber(0, 7, bytes.length), bytes]
}

function encodeNumber(first: number, bits: number, value: number): Buffer {
  const most = 2 ** bits - 1
  if (value < most) return Buffer.of(first | value)
  const bytes = [first | most]
  let rest = value - most
  for (; rest >= 0x80; rest >>= 7) bytes.push((rest & 0x7f) | 0x80)
  return Buffer.of(...bytes, rest)
}

/** Decodes headers of a server that was told to use no dynamic table. */
export function decodeHeaders(block: Buffer): HeaderMap {
  const reader = new HeaderReader(block)
  const headers = new Map<string, string>()
  while (!reader.isAtEnd) {
    const header = reader.next()
    if (header) headers.set(...header)
  }
  return headers
}

class HeaderReader {
  readonly #block: Buffer
  #at = 0

  constructor(block: Buffer) {
    this.#block = block
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#block.length
  }

  /** null: it was no header. */
  next(): Header | null {
    const first = this.#block[this.#at] ?? 0
    if (first & INDEXED) return staticHeader(this.#number(7))
    if (first & LITERAL_INDEXED) return this.#literal(6)
    if (!(first & TABLE_SIZE)) return this.#literal(4)
    if (this.#number(5) > 0) throw invalidHeaders('they use a table of a size that was not offered')
    return null
  }

  /** What a header would add to a table without room is not kept. */
  #literal(bits: number): Header {
    const index = this.#number(bits)
    const name = index === 0 ? this.#text() : staticHeader(index)[0]
    return [name, this.#text()]
  }

  #text(): string {
    const isHuffman = ((this.#block[this.#at] ?? 0) & HUFFMAN) !== 0
    const length = this.#number(7)
    const bytes = this.#block.subarray(this.#at, this.#at + length)
    if (bytes.length < length) throw invalidHeaders('they end too early')
    this.#at += length
    return isHuffman ? decodeHuffman(bytes) : bytes.toString('latin1')
  }

  #number(bits: number): number {
    const most = 2 ** bits - 1
    let value = this.#byte() & most
    if (value < most) return value
    for (let shift = 0; shift < 7 * (MOST_NUMBER_BYTES - 1); shift += 7) {
      const byte = this.#byte()
      value += (byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
    throw invalidHeaders('a number is too large')
  }

  #byte(): number {
    const byte = this.#block[this.#at++]
    if (byte === undefined) throw invalidHeaders('they end too early')
    return byte
  }
}

function staticHeader(index: number): Header {
  const header = STATIC[index - 1]
  if (!header) throw invalidHeaders(`there is no header with the number ${index}`)
  return header
}

function invalidHeaders(why: string): Http2Error {
  return new Http2Error(Code.compressionError, `Headers cannot be read: ${why}`)
}
