const FIRST_BYTES = 128
const VARINT = 0
const FIXED_64 = 1
const DELIMITED = 2
const FIXED_32 = 5

/** Writes one protobuf message. Zero, empty and false are left out, as proto3 has it. */
export class ProtoWriter {
  #bytes = Buffer.allocUnsafe(FIRST_BYTES)
  #length = 0

  int(field: number, value: number | bigint | boolean): this {
    if (!value) return this
    this.#varint((field << 3) | VARINT)
    this.#varint(typeof value === 'boolean' ? 1 : value)
    return this
  }

  bytes(field: number, value: Uint8Array): this {
    return value.length === 0 ? this : this.#delimited(field, value)
  }

  text(field: number, value: string): this {
    return value === '' ? this : this.#delimited(field, Buffer.from(value))
  }

  /** A message inside this one, also if it is empty. */
  message(field: number, write: (out: ProtoWriter) => void): this {
    const inner = new ProtoWriter()
    write(inner)
    return this.#delimited(field, inner.finish())
  }

  finish(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  #delimited(field: number, value: Uint8Array): this {
    this.#varint((field << 3) | DELIMITED)
    this.#varint(value.length)
    this.#reserve(value.length)
    this.#bytes.set(value, this.#length)
    this.#length += value.length
    return this
  }

  #varint(value: number | bigint): void {
    this.#reserve(10)
    if (typeof value === 'bigint') return this.#long(value)
    let rest = value
    while (rest >= 0x80) {
      this.#bytes[this.#length++] = (rest % 0x80) | 0x80
      rest = Math.floor(rest / 0x80)
    }
    this.#bytes[this.#length++] = rest
  }

  #long(value: bigint): void {
    let rest = BigInt.asUintN(64, value)
    while (rest >= 0x80n) {
      this.#bytes[this.#length++] = Number(rest & 0x7fn) | 0x80
      rest >>= 7n
    }
    this.#bytes[this.#length++] = Number(rest)
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#length + count))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}

/** Reads one protobuf message, field by field: `for (let f = r.next(); f !== 0; f = r.next())`. */
export class ProtoReader {
  readonly #bytes: Buffer
  #at = 0
  #type = VARINT

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /** The number of the next field; 0: there is none. Its value has to be read or skipped. */
  next(): number {
    if (this.#at >= this.#bytes.length) return 0
    const tag = this.#varint()
    this.#type = tag & 7
    return tag >>> 3
  }

  /** A number below 2^53. */
  int(): number {
    return this.#varint()
  }

  long(): bigint {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.#byte()
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return BigInt.asIntN(64, value)
    }
  }

  bytes(): Buffer {
    const length = this.#varint()
    if (this.#at + length > this.#bytes.length) throw new RangeError('The message ends too early')
    this.#at += length
    return this.#bytes.subarray(this.#at - length, this.#at)
  }

  text(): string {
    return String(this.bytes())
  }

  message(): ProtoReader {
    return new ProtoReader(this.bytes())
  }

  skip(): void {
    if (this.#type === VARINT) this.#varint()
    else if (this.#type === DELIMITED) this.bytes()
    else if (this.#type === FIXED_64) this.#at += 8
    else if (this.#type === FIXED_32) this.#at += 4
    else throw new RangeError(`A field has the unknown type ${this.#type}`)
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
    if (byte === undefined) throw new RangeError('The message ends too early')
    return byte
  }
}
