/** Enough for most requests. */
const FIRST_BYTES = 512
const LONGEST_VARINT = 10
const VARINT = 0
const FIXED_64 = 1
const DELIMITED = 2
const FIXED_32 = 5

/** Writes one protobuf message. Zero, empty and false are left out, as proto3 has it. */
export class ProtoWriter {
  #bytes = Buffer.allocUnsafe(FIRST_BYTES)
  #length: number

  /** `headBytes`: so many are left free before the message. */
  constructor(headBytes = 0) {
    this.#length = headBytes
  }

  int(field: number, value: number | bigint | boolean): this {
    if (!value) return this
    this.#varint((field << 3) | VARINT)
    this.#varint(typeof value === 'boolean' ? 1 : value)
    return this
  }

  bytes(field: number, value: Uint8Array): this {
    const { length } = value
    if (length === 0) return this
    this.#start(field, length)
    this.#bytes.set(value, this.#length)
    this.#length += length
    return this
  }

  text(field: number, value: string): this {
    if (value === '') return this
    const before = this.#length
    this.#start(field, value.length)
    if (this.#ascii(value)) return this
    this.#length = before
    return this.bytes(field, Buffer.from(value))
  }

  /** A message inside this one, also if it is empty. `write` must not keep the writer. */
  message(field: number, write: (out: ProtoWriter) => void): this {
    const start = this.begin(field)
    write(this)
    this.end(start)
    return this
  }

  /** The same without a function. Returns what `end` has to be given. */
  begin(field: number): number {
    this.#start(field, 0)
    return this.#length
  }

  /** Most messages are short: their length has the one byte that `begin` has left for it. */
  end(start: number): void {
    const length = this.#length - start
    if (length < 0x80) {
      this.#bytes[start - 1] = length
      return
    }
    const more = varintBytes(length) - 1
    this.#reserve(more)
    this.#bytes.copyWithin(start + more, start, start + length)
    this.#length = start - 1
    this.#varint(length)
    this.#length += length
  }

  finish(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  /** The head of a field of so many bytes, for which there is room then. */
  #start(field: number, length: number): void {
    this.#varint((field << 3) | DELIMITED)
    this.#varint(length)
    this.#reserve(length)
  }

  /** false: it has other characters. By hand, because calls into C++ take longer. */
  #ascii(value: string): boolean {
    const bytes = this.#bytes
    let at = this.#length
    for (let index = 0; index < value.length; index++) {
      const code = value.charCodeAt(index)
      if (code > 0x7f) return false
      bytes[at++] = code
    }
    this.#length = at
    return true
  }

  #varint(value: number | bigint): void {
    this.#reserve(LONGEST_VARINT)
    if (typeof value === 'bigint') return this.#long(value)
    let rest = value
    while (rest >= 0x80) {
      this.#bytes[this.#length++] = (rest % 0x80) | 0x80
      rest = Math.floor(rest / 0x80)
    }
    this.#bytes[this.#length++] = rest
  }

  #long(value: bigint): void {
    let { low, high } = halvesOf(value)
    while (high > 0 || low >= 0x80) {
      this.#bytes[this.#length++] = (low & 0x7f) | 0x80
      low = ((low >>> 7) | (high << 25)) >>> 0
      high >>>= 7
    }
    this.#bytes[this.#length++] = low
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#length + count))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}

interface Halves {
  readonly whole: bigint
  readonly low: number
  readonly high: number
}

/** Nearly all are the id of one lease, and operations on a bigint are slow. */
let lastHalves: Halves = { whole: 0n, low: 0, high: 0 }
let lastLong = { low: 0, middle: 0, high: 0, whole: 0n }

function halvesOf(whole: bigint): Halves {
  if (lastHalves.whole !== whole) {
    const [low, high] = [Number(BigInt.asUintN(32, whole)), Number(BigInt.asUintN(32, whole >> 32n))]
    lastHalves = { whole, low, high }
  }
  return lastHalves
}

/** Of parts of 28 bits. */
function longOf(low: number, middle: number, high: number): bigint {
  if (lastLong.low !== low || lastLong.middle !== middle || lastLong.high !== high) {
    const whole = BigInt.asIntN(64, (BigInt(high * 2 ** 28 + middle) << 28n) | BigInt(low))
    lastLong = { low, middle, high, whole }
  }
  return lastLong.whole
}

function varintBytes(value: number): number {
  let count = 1
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) count++
  return count
}

/** Reads one protobuf message, field by field: `for (let f = r.next(); f !== 0; f = r.next())`. */
export class ProtoReader {
  readonly #bytes: Buffer
  #at: number
  readonly #end: number
  #type = VARINT

  /** Of all bytes, or of those from `start` to before `end`. */
  constructor(bytes: Buffer, start = 0, end = bytes.length) {
    this.#bytes = bytes
    this.#at = start
    this.#end = end
  }

  /** The number of the next field; 0: there is none. Its value has to be read or skipped. */
  next(): number {
    if (this.#at >= this.#end) return 0
    const tag = this.#varint()
    this.#type = tag & 7
    return tag >>> 3
  }

  /** A number below 2^53. */
  int(): number {
    return this.#varint()
  }

  /** A number of 64 bits. In parts of 28 bits, because operations on a bigint allocate one. */
  long(): bigint {
    const parts = [0, 0, 0]
    for (let bits = 0; bits < 7 * LONGEST_VARINT; bits += 7) {
      const byte = this.#byte()
      const part = Math.floor(bits / 28)
      parts[part] = (parts[part] ?? 0) | ((byte & 0x7f) << (bits % 28))
      if (byte >= 0x80) continue
      return longOf(parts[0] ?? 0, parts[1] ?? 0, parts[2] ?? 0)
    }
    throw new RangeError('A number is too long')
  }

  bytes(): Buffer {
    const end = this.#endOfValue()
    const bytes = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return bytes
  }

  text(): string {
    const end = this.#endOfValue()
    const text = this.#bytes.toString('utf8', this.#at, end)
    this.#at = end
    return text
  }

  message(): ProtoReader {
    const end = this.#endOfValue()
    const message = new ProtoReader(this.#bytes, this.#at, end)
    this.#at = end
    return message
  }

  skip(): void {
    if (this.#type === VARINT) this.#varint()
    else if (this.#type === DELIMITED) this.#at = this.#endOfValue()
    else if (this.#type === FIXED_64) this.#at += 8
    else if (this.#type === FIXED_32) this.#at += 4
    else throw new RangeError(`A field has the unknown type ${this.#type}`)
  }

  /** Where the value ends whose length comes next. */
  #endOfValue(): number {
    const length = this.#varint()
    const end = this.#at + length
    if (end > this.#end) throw new RangeError('The message ends too early')
    return end
  }

  #varint(): number {
    let value = 0
    for (let factor = 1; ; factor *= 0x80) {
      const byte = this.#byte()
      value += (byte & 0x7f) * factor
      if (byte < 0x80) return value
    }
  }

  #byte(): number {
    const byte = this.#bytes[this.#at++]
    if (byte === undefined || this.#at > this.#end) throw new RangeError('The message ends too early')
    return byte
  }
}
