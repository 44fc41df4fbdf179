import { expect } from 'vitest'
import { HoldfastError } from '../../src/base/errors.js'
import type { Hold } from '../../src/primitives/hold.js'
import type { Holdfast } from '../../src/primitives/holdfast.js'
import { eventually, now, pass } from '../../src/testing/conformance/checks.js'

const SEATS = 3
const LONGEST_MS = 8

/**
 * Clients that contend for a semaphore and for a read-write lock; writes down when more are inside
 * than there may be.
 */
export class Seats {
  readonly #wrongs: string[] = []
  #grants = 0
  #losses = 0
  readonly #clients: readonly Holdfast[]
  readonly #last = new Map<string, number>()
  readonly #inside = { seats: new Set<Hold>(), table: new Set<Hold>() }
  readonly #loops: Promise<void>[]
  #isOver = false

  constructor(clients: readonly Holdfast[]) {
    this.#clients = clients
    this.#loops = clients.flatMap((client, index) => [
      this.#loop('seats', `seats ${index}`, () => {
        const permits = Math.random() < 0.5 ? 1 : 2
        return client.semaphore('seats', SEATS).acquire({ permits })
      }),
      this.#loop('table', `reader ${index}`, () => client.readWrite('table').read.acquire()),
      this.#loop('table', `writer ${index}`, () => client.readWrite('table').write.acquire()),
    ])
  }

  /**
   * Resolves when everybody has been served since; fails, with their names, where somebody is not.
   */
  async served(): Promise<void> {
    const since = now()
    const waiting = (): string[] => [...this.#last].filter(([, at]) => at <= since).map(([name]) => name)
    await eventually('everybody served', () => waiting().length === 0, 60_000).catch((error: Error) => {
      throw new Error(`${error.message}; stranded: ${waiting().join(', ')}`)
    })
  }

  /** Resolves when so many more have been let in. */
  async granted(count: number): Promise<void> {
    const wanted = this.#grants + count
    await eventually(`${count} more grants`, () => this.#grants >= wanted, 60_000)
  }

  /** Ends it; fails where more were inside than there may be. */
  async judged(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#loops)
    await Promise.all(this.#clients.map((client) => client.close({ drain: 0 })))
    console.log(`${this.#grants} grants; ${this.#losses} losses; ${this.#wrongs.length} wrongs`)
    expect(this.#wrongs).toEqual([])
  }

  async #loop(where: 'seats' | 'table', name: string, acquire: () => Promise<Hold>): Promise<void> {
    this.#last.set(name, 0)
    const inside = this.#inside[where]
    while (!this.#isOver) {
      try {
        const hold = await acquire()
        inside.add(hold)
        this.#last.set(name, now())
        this.#count(where)
        this.#grants++
        try {
          await this.#stay(hold)
        } finally {
          inside.delete(hold)
          await hold.release()
        }
      } catch (error) {
        this.#failed(error)
        await pass(10)
      }
    }
  }

  async #stay(hold: Hold): Promise<void> {
    await pass(Math.random() * LONGEST_MS)
    if (hold.permits === 1 || Math.random() < 0.7) return
    if (hold.isExclusive) await hold.downgrade()
    else await hold.shrink(1)
    await pass(Math.random() * LONGEST_MS)
  }

  #failed(error: unknown): void {
    const code = error instanceof HoldfastError && error.code
    if (code === 'HOLD_LOST') this.#losses++
    else if (code !== 'STORE_UNAVAILABLE') this.#wrongs.push(String(error))
  }

  #count(where: 'seats' | 'table'): void {
    const valid = [...this.#inside[where]].filter((hold) => hold.isValid)
    const taken = valid.reduce((sum, { permits }) => sum + permits, 0)
    const isTooMany =
      where === 'seats' ? taken > SEATS : valid.length > 1 && valid.some((hold) => hold.isExclusive)
    if (isTooMany) this.#wrongs.push(`${valid.length} with ${taken} permits inside ${where}`)
  }
}
