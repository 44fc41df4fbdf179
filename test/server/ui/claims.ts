import { EXCLUSIVE } from '../../../src/contract/constants.js'
import type { Connection, Store } from '../../../src/contract/store.js'

const TEN_MINUTES_MS = 600_000

/** What a claim says about its owner: the store does not read it, so it may be anything. */
export interface Said {
  readonly host: string
  readonly pid: number
  readonly owner: string
  readonly label: string | null
}

/** Puts claims into a store directly: long lines, many resources, and words that no client writes. */
export class Claims {
  readonly #connection: Connection
  #last = 0

  constructor(store: Store, space: string) {
    this.#connection = store.connect({ id: 'claims', space, push: () => {} })
  }

  async add(resource: string, said: Partial<Said> = {}): Promise<string> {
    const id = `claim-${++this.#last}`
    const info = JSON.stringify({ host: 'api-1', pid: this.#last, owner: `owner-${this.#last}`, ...said })
    await this.#connection.claim({
      resource,
      id,
      permits: EXCLUSIVE,
      capacity: EXCLUSIVE,
      leaseMs: TEN_MINUTES_MS,
      presenceMs: TEN_MINUTES_MS,
      maxHoldMs: null,
      mode: 'queue',
      floor: 0,
      block: 1,
      info,
    })
    return id
  }

  async release(resource: string, id: string): Promise<void> {
    await this.#connection.release(resource, id)
  }
}
