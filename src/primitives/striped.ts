import { invalid } from '../base/errors.js'
import { checkName } from '../base/names.js'
import { MultiLock } from './multi-lock.js'
import { Mutex } from './mutex.js'
import type { LockContext } from './reentry.js'

/** Every `all()` needs this many rows or keys in the store. */
const MOST_SEGMENTS = 10_000

/**
 * One lock in segments, so that work on different keys rarely collides. A key always maps to the
 * same segment, in every process that declares the same number of segments. With another number it
 * maps elsewhere, so change the name along with the number.
 *
 * @example
 * ```ts
 * import { Holdfast } from 'holdfast'
 * import { memory } from 'holdfast/memory'
 *
 * const stock = new Holdfast(memory()).striped('stock', 100)
 * const segment = stock.indexOf('user:7')
 * await stock.for('user:7').run(async () => console.log('buying from the segment', segment))
 * ```
 */
export class StripedLock {
  readonly #context: LockContext
  /** The prefix of the names of the segments. */
  readonly name: string
  /** How many segments there are. */
  readonly count: number

  /** Made by `locks.striped(name, count)`. */
  constructor(context: LockContext, name: string, count: number) {
    this.#context = context
    this.name = checkName(name, 'The name of a striped lock')
    if (!Number.isSafeInteger(count) || count < 1 || count > MOST_SEGMENTS)
      throw invalid(`A striped lock has from 1 to ${MOST_SEGMENTS} segments`, name)
    this.count = count
  }

  /** The number of the segment of a key. */
  indexOf(key: string | number): number {
    if (typeof key !== 'string' && typeof key !== 'number')
      throw invalid('The key of a striped lock must be a string or a number', this.name)
    return hash(String(key)) % this.count
  }

  /** The mutex of the segment of a key. */
  for(key: string | number): Mutex {
    return this.at(this.indexOf(key))
  }

  /** The mutex of a segment by its number, for work that goes through the segments. */
  at(index: number): Mutex {
    return new Mutex(this.#context, this.#segment(index))
  }

  /**
   * The segments of several keys together, without duplicates, in a fixed order. Use it to move
   * something from one key to another.
   */
  forKeys(keys: Iterable<string | number>): MultiLock {
    if (typeof keys === 'string' || typeof keys?.[Symbol.iterator] !== 'function')
      throw invalid("forKeys() takes several keys, such as ['user:7', 'user:8']", this.name)
    return new MultiLock(
      this.#context,
      Array.from(keys, (key) => this.#segment(this.indexOf(key))),
    )
  }

  /**
   * All segments together, in a fixed order. Use it for work across them, such as a total count.
   */
  all(): MultiLock {
    return new MultiLock(
      this.#context,
      Array.from({ length: this.count }, (_, index) => this.#segment(index)),
    )
  }

  #segment(index: number): string {
    if (!Number.isSafeInteger(index) || index < 0 || index >= this.count)
      throw invalid(
        `'${this.name}' has segments 0 to ${this.count - 1}; there is no segment ${index}`,
        this.name,
      )
    return `${this.name}#${index}`
  }
}

/**
 * FNV-1a of the key's UTF-8 bytes in 32 bits, with the last bits mixed, since it is taken modulo
 * small numbers. The docs specify it so that other languages map keys in the same way: it can never
 * change.
 */
function hash(key: string): number {
  let bits = 0x811c9dc5
  for (const byte of Buffer.from(key)) bits = Math.imul(bits ^ byte, 0x01000193)
  bits ^= bits >>> 16
  bits = Math.imul(bits, 0x85ebca6b)
  bits ^= bits >>> 13
  return bits >>> 0
}
