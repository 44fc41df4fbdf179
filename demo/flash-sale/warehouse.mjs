/**
 * The resource that the lock protects, with the one check that makes a late writer harmless: it remembers the highest fence it
 * has seen and refuses every lower one. (Here it is an object; it could be a column in a table: UPDATE … WHERE fence <= ?.)
 */
export class Warehouse {
  #highestFence = 0
  #checksFences
  content = 'empty'

  /** @param {{ checksFences?: boolean }} options without the check, every write is accepted */
  constructor({ checksFences = true } = {}) {
    this.#checksFences = checksFences
  }

  /**
   * @param {number} fence
   * @param {string} content
   * @returns {boolean} whether the write was accepted
   */
  write(fence, content) {
    if (this.#checksFences && fence < this.#highestFence) return false
    this.#highestFence = fence
    this.content = content
    return true
  }
}
