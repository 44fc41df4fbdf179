/**
 * Writes the primitive types of jute, ZooKeeper's serialisation: big-endian, lengths before
 * contents.
 */
export class JuteWriter {
  #buffer = Buffer.allocUnsafe(256)
  #length = 0

  int(value: number): this {
    this.#length = this.#room(4).writeInt32BE(value, this.#length)
    return this
  }

  long(value: bigint): this {
    this.#length = this.#room(8).writeBigInt64BE(value, this.#length)
    return this
  }

  bool(value: boolean): this {
    this.#length = this.#room(1).writeUInt8(value ? 1 : 0, this.#length)
    return this
  }

  buffer(value: Uint8Array): this {
    this.int(value.byteLength)
    this.#room(value.byteLength).set(value, this.#length)
    this.#length += value.byteLength
    return this
  }

  string(value: string): this {
    const size = Buffer.byteLength(value)
    this.int(size)
    this.#length += this.#room(size).write(value, this.#length)
    return this
  }

  vector<T>(values: readonly T[], write: (value: T) => void): this {
    this.int(values.length)
    values.forEach(write)
    return this
  }

  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  #room(bytes: number): Buffer {
    if (this.#length + bytes > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(2 * this.#buffer.length, this.#length + bytes))
      this.#buffer.copy(larger, 0, 0, this.#length)
      this.#buffer = larger
    }
    return this.#buffer
  }
}

/** Reads the primitive types of jute. Throws a RangeError if the bytes end too early. */
export class JuteReader {
  readonly #bytes: Buffer
  #offset = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  int(): number {
    const value = this.#bytes.readInt32BE(this.#offset)
    this.#offset += 4
    return value
  }

  long(): bigint {
    const value = this.#bytes.readBigInt64BE(this.#offset)
    this.#offset += 8
    return value
  }

  /** A long that is known to fit a number: much faster. */
  longNumber(): number {
    return this.int() * 2 ** 32 + (this.int() >>> 0)
  }

  bool(): boolean {
    return this.#bytes.readUInt8(this.#offset++) !== 0
  }

  /** A copy, because the connection reuses the bytes. jute's null is read as empty. */
  buffer(): Buffer {
    return Buffer.from(this.#slice())
  }

  string(): string {
    return this.#slice().toString()
  }

  vector<T>(read: () => T): T[] {
    const count = this.int()
    const values: T[] = []
    for (let index = 0; index < count; index++) values.push(read())
    return values
  }

  #slice(): Buffer {
    const length = Math.max(0, this.int())
    const end = this.#offset + length
    if (end > this.#bytes.length) throw new RangeError('The record ends before its content')
    const slice = this.#bytes.subarray(this.#offset, end)
    this.#offset = end
    return slice
  }
}
