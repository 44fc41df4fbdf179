import { type Env, systemEnv } from '../../src/base/env.js'
import { FLOOR_SKEW_MS } from '../../src/contract/constants.js'
import type { Store } from '../../src/contract/store.js'
import { Holdfast, type HoldfastOptions } from '../../src/primitives/holdfast.js'
import { quorum } from '../../src/stores/quorum/index.js'
import { InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'
import { Recording } from './recording.js'

/** Where a bug is put. */
export interface Plant {
  /** At the store, for all clients. */
  readonly atStore?: (store: Store) => Store
  /** At each client, before its calls are sent. */
  readonly atClient?: (store: Store) => Store
  /** At each client of a quorum, before its calls are sent to a member. */
  readonly atMember?: (store: Store) => Store
}

/** A client, and the ways between it and its stores, where calls can be held up. */
export interface Actor {
  readonly locks: Holdfast
  readonly ways: readonly InterceptedStore[]
  /** The first of them. */
  readonly way: InterceptedStore
}

/**
 * Ahead of the members, so that all of them grant with the fence that the client asks for, however
 * late they are. Where their fences differ, they are asked once more, and notice what has lapsed.
 */
const AHEAD: Env = { ...systemEnv, wallMs: () => systemEnv.wallMs() + FLOOR_SKEW_MS / 2 }
/** No member is left alone because a scenario holds up its answers. */
const PATIENT = { memberTimeout: '30s', env: AHEAD } as const

/** Clients on one store, or on a quorum of several, with or without a planted bug. */
export class Stage {
  readonly recording = new Recording()
  readonly #stores: readonly Store[]
  readonly #plant: Plant
  readonly #options: HoldfastOptions
  readonly #clients: Holdfast[] = []

  constructor(stores: readonly Store[], plant: Plant, space: string) {
    this.#plant = plant
    this.#stores = stores.map((store) => plant.atStore?.(store) ?? store)
    // Nothing is passed on inside a process: what is planted must be met.
    this.#options = { space, order: 'strict', storeTimeout: '30s' }
  }

  actor(): Actor {
    const { atClient = same, atMember = same } = this.#plant
    const ways = this.#stores.map((store) => new InterceptedStore(store))
    const [way] = ways
    if (!way) throw new Error('A stage needs a store')
    const store = ways.length === 1 ? way : quorum(ways.map(atMember), PATIENT)
    const locks = new Holdfast(atClient(store), this.#options)
    this.#clients.push(locks)
    return { locks, ways, way }
  }

  async close(): Promise<void> {
    for (const client of this.#clients) await client.close({ drain: 0 }).catch(() => {})
  }
}

function same(store: Store): Store {
  return store
}
