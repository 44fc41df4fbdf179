import type { ClientContext, Store } from '../contract/store.js'
import { LossyConnection } from './network/connection.js'
import { type Cut, type Faults, gentle, Link } from './network/link.js'
import type { VirtualProcess, VirtualWorld } from './virtual-env.js'

export type { Cut, Faults } from './network/link.js'

/** The options of `lossyStore`: the faults from the beginning, and the process of the store. */
export interface LossyOptions extends Partial<Faults> {
  /** The process that the store runs in, if it can pause or die too. */
  server?: VirtualProcess
}

/** A store behind a bad network. */
export interface LossyStore {
  /** The store as that process sees it. */
  from(process: VirtualProcess): Store
  /** Cuts a process off: its requests, the replies and pushes to it, or both. */
  partition(process: VirtualProcess, cut?: Cut): void
  /** Ends the partition of one process. */
  mend(process: VirtualProcess): void
  /** Changes how the network misbehaves, from now on. */
  set(faults: Partial<Faults>): void
  /** Ends every partition and every fault: from now on the network is only slow. */
  heal(): void
}

/**
 * Puts a bad network between the processes of a simulation and a store. Each call travels as a
 * request and a reply, and pushes travel by themselves, so that they overtake replies; each may be
 * slow, very late, doubled or lost. A process that is paused takes in nothing until it goes on.
 */
export function lossyStore(store: Store, world: VirtualWorld, options: LossyOptions = {}): LossyStore {
  const { server, ...faults } = options
  const random = world.stream(`network of ${server?.name ?? store.name}`)
  const links = new Map<VirtualProcess, Link>()
  let current: Faults = { ...gentle, ...faults }

  const linkOf = (process: VirtualProcess): Link => {
    const known = links.get(process)
    if (known) return known
    const link = new Link({ world, random, process, server, faults: () => current })
    links.set(process, link)
    return link
  }

  return {
    from: (process) => ({
      name: store.name,
      capabilities: store.capabilities,
      connect: (client: ClientContext) => new LossyConnection(store, client, linkOf(process)),
    }),
    partition: (process, cut = 'both') => linkOf(process).cut(cut),
    mend: (process) => linkOf(process).mend(),
    set(change) {
      current = { ...current, ...change }
    },
    heal() {
      current = { ...current, lossRate: 0, pushLossRate: 0, doubleRate: 0, lateRate: 0, hangRate: 0 }
      for (const link of links.values()) link.mend()
    },
  }
}
