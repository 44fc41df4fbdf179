import type { Ears, Listener } from './ears.js'
import type { Names } from './names.js'

interface Watch {
  readonly listener: Listener
  /** The number of the newest change that the reader has seen; null while it reads. */
  seen: number | null
  /** The number of the newest change that was told. */
  told: number
}

/**
 * The states that one client watches, each by a subscription to the state's own channel: the server keeps nothing for it that could be left
 * behind. A watch ends with the first change that came after what was read.
 */
export class Watches {
  readonly #ears: Ears
  readonly #names: Names
  readonly #onChange: (key: string) => void
  readonly #watches = new Map<string, Watch>()

  constructor(ears: Ears, names: Names, onChange: (key: string) => void) {
    this.#ears = ears
    this.#names = names
    this.#onChange = onChange
  }

  /** Before the state is read, so that no change can slip in between. Resolves when changes are heard. */
  async begin(key: string): Promise<void> {
    const known = this.#watches.get(key)
    if (known) {
      known.seen = null
      return
    }
    const listener: Listener = {
      onMessage: (number) => this.#onTold(key, Number(number)),
      // The client's own channel, on the same connection, tells of gaps.
      onGap: () => {},
    }
    this.#watches.set(key, { listener, seen: null, told: 0 })
    await this.#ears.listen(this.#names.stateChannel(key), listener)
  }

  /** After it was read: `number` is that of its newest change. */
  read(key: string, number: number): void {
    const watch = this.#watches.get(key)
    if (!watch) return
    watch.seen = number
    this.#onTold(key, watch.told)
  }

  async end(): Promise<void> {
    await Promise.all([...this.#watches.keys()].map((key) => this.#forget(key)))
  }

  #onTold(key: string, number: number): void {
    const watch = this.#watches.get(key)
    if (!watch) return
    watch.told = Math.max(watch.told, number)
    if (watch.seen === null || watch.told <= watch.seen) return
    void this.#forget(key)
    this.#onChange(key)
  }

  async #forget(key: string): Promise<void> {
    const watch = this.#watches.get(key)
    this.#watches.delete(key)
    if (watch) await this.#ears.leave(this.#names.stateChannel(key), watch.listener)
  }
}
