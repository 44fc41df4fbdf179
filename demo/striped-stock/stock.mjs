import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

/** As long as it takes to ask somebody else, such as a bank. */
export const SALE_MS = 6

/** What is on sale, in segments: for each a file with what is left of it, and one with a line for each piece sold. */
export class Stock {
  #folder
  #segments
  /** How many there were at the beginning. */
  pieces

  /**
   * @param {string} folder
   * @param {{ pieces: number, segments: number }} size
   */
  constructor(folder, { pieces, segments }) {
    this.#folder = folder
    this.#segments = segments
    this.pieces = pieces
  }

  fill() {
    for (let index = 0; index < this.#segments; index++) {
      writeFileSync(this.#leftFile(index), String(this.pieces / this.#segments).padStart(4))
      writeFileSync(this.#soldFile(index), '')
    }
  }

  /**
   * Sells a piece of one segment. Between the reading and the writing nobody else may do the same: the caller holds the segment.
   * @param {number} index
   * @param {{ buyer: string, fence: number }} sale
   * @returns {Promise<boolean>} false: sold out
   */
  async sell(index, sale) {
    const left = Number(readFileSync(this.#leftFile(index), 'utf8'))
    if (left === 0) return false
    await wait(SALE_MS / 2)
    writeFileSync(this.#leftFile(index), String(left - 1).padStart(4), { flag: 'r+' })
    // Taken from the stock and not yet in the books: whoever counts now finds a piece missing.
    await wait(SALE_MS / 2)
    appendFileSync(this.#soldFile(index), `${JSON.stringify(sale)}\n`)
    return true
  }

  /** What is left of each segment, and its sales in their order. Consistent only while nobody sells. */
  read() {
    return Array.from({ length: this.#segments }, (_, index) => {
      const lines = readFileSync(this.#soldFile(index), 'utf8').split('\n').slice(0, -1)
      /** @type {{ buyer: string, fence: number }[]} */
      const sales = lines.map((text) => JSON.parse(text))
      return { left: Number(readFileSync(this.#leftFile(index), 'utf8')), sales }
    })
  }

  /** @param {number} index */
  #leftFile(index) {
    return join(this.#folder, `left-${index}.txt`)
  }

  /** @param {number} index */
  #soldFile(index) {
    return join(this.#folder, `sold-${index}.txt`)
  }
}
