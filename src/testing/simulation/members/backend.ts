import type { ClientContext, Store } from '../../../contract/store.js'
import { quorum } from '../../../stores/quorum/index.js'
import { type LossyStore, lossyStore } from '../../network.js'
import type { VirtualProcess, VirtualWorld } from '../../virtual-env.js'
import { type Backend, LATENCY_MS, MOST_DRIFT, pauseFor, randomCut, randomWeather } from '../backend.js'
import { MemberConnection } from './connection.js'
import { MemberLedger } from './ledger.js'
import { type Kept, type MemberFault, type MemberKind, MemberServer } from './server.js'

/** How the members of a world differ, and what their restarts lose. */
export interface MemberTerms {
  readonly members: number
  /** The longest lease of the quorum. */
  readonly longestLeaseMs: number
  /** How far each wall clock may be off, to both sides. */
  readonly skewMs: number
  /**
   * What restarts may leave. Where a member may lose its counter, the clocks must keep fences in
   * order.
   */
  readonly kept: readonly Kept[]
  /**
   * Whether no process reaches all members: each sees another majority, until everything heals. All
   * holds then rest on a bare majority.
   */
  readonly isSplit: boolean
  /** How many servers are disturbed at a time. */
  readonly disturbedAtOnce: number
  /**
   * The least and the most that a message takes. The longer, the more calls are under way when a
   * server restarts.
   */
  readonly latencyMs: readonly [number, number]
}

/** Faults that are built into a world, to see that the simulation notices them. */
export interface PlantedFault extends MemberFault {
  /** Wraps the quorum store of each process. */
  alterQuorum?(store: Store, process: VirtualProcess): Store
  /** Wraps each member as a process sees it. */
  alterMember?(store: Store, process: VirtualProcess): Store
}

interface ServersContext extends MemberTerms {
  readonly world: VirtualWorld
  readonly random: () => number
  readonly isMixed: boolean
  readonly planted: PlantedFault
}

interface Member {
  readonly server: MemberServer
  readonly network: LossyStore
}

/** A process gives up on a member that is silent for longer than one of these. */
const MEMBER_TIMEOUTS_MS = [200, 500, 1000]
const CALM = { lossRate: 0, pushLossRate: 0, doubleRate: 0, lateRate: 0, hangRate: 0 }
const FOUNDED_AFTER_MS = 200
const KINDS: readonly MemberKind[] = ['volatile', 'volatile', 'durable', 'durable', 'steady']

/** Independent servers, each behind its own bad network, under one quorum store. */
export class MemberServers implements Backend {
  readonly #context: ServersContext
  readonly #ledger: MemberLedger
  readonly #members: Member[]
  /** Those that are about to restart, or down. */
  readonly #failing = new Set<MemberServer>()
  #isCalm = false
  #processes = 0

  constructor(context: ServersContext) {
    this.#context = context
    this.#ledger = new MemberLedger(context.members)
    this.#members = Array.from({ length: context.members }, (_, index) => this.#member(`m${index + 1}`))
  }

  get ledger(): MemberLedger {
    return this.#ledger
  }

  from(process: VirtualProcess): Store {
    const { random, longestLeaseMs, planted } = this.#context
    process.wallOffsetMs = this.#skew()
    if (this.#context.isSplit) this.#hideMinority(process)
    const members = this.#members.map(({ network }) => {
      const member = connectedFrom(process, network)
      return planted.alterMember?.(member, process) ?? member
    })
    const memberTimeout = MEMBER_TIMEOUTS_MS[Math.floor(random() * MEMBER_TIMEOUTS_MS.length)] ?? 500
    const store = quorum(members, { env: process, longestLease: longestLeaseMs, memberTimeout })
    return planted.alterQuorum?.(store, process) ?? store
  }

  #hideMinority(process: VirtualProcess): void {
    const { world } = this.#context
    const first = this.#processes++
    const hide = (): void => {
      for (let count = 0; count < (this.#members.length - 1) / 2 && !this.#isCalm; count++)
        this.#members[(first + count) % this.#members.length]?.network.partition(process)
    }
    // A new set needs somebody who reaches all its members.
    world.after(Math.max(0, FOUNDED_AFTER_MS - world.timeMs), hide)
  }

  disturb(forMs: number): void {
    for (let count = 0; count < this.#context.disturbedAtOnce; count++) this.#disturbOne(forMs)
  }

  /**
   * Mostly from one member: then the process goes on with the others, which is where it can go
   * wrong.
   */
  cutFor(process: VirtualProcess, ms: number): void {
    const { random, world } = this.#context
    const one = random() < 0.7 ? Math.floor(random() * this.#members.length) : null
    for (const [index, { network }] of this.#members.entries()) {
      if (one === null ? random() < 0.4 : index !== one) continue
      network.partition(process, randomCut(random))
      world.after(ms * random(), () => network.mend(process))
    }
  }

  /** Mostly it is bad at few members at a time, so that locks are granted all the while. */
  changeWeather(): void {
    const { random, isMixed, latencyMs } = this.#context
    for (const { network } of this.#members) {
      const weather = randomWeather(random, isMixed)
      network.set(random() < 0.3 ? weather : { ...CALM, latencyMs })
    }
  }

  heal(): void {
    this.#isCalm = true
    for (const { server, network } of this.#members) {
      network.heal()
      network.set({ latencyMs: LATENCY_MS })
      server.process.resume()
      // A restart that is under way ends by itself.
      if (!server.isUp && !this.#failing.has(server)) server.start('all')
    }
  }

  /** A minority stands still, or is down. */
  weaken(): void {
    const { random } = this.#context
    const first = Math.floor(random() * this.#members.length)
    for (let count = 0; count < (this.#members.length - 1) / 2; count++) {
      const { server } = this.#members[(first + count) % this.#members.length] as Member
      if (random() < 0.5) server.process.pause()
      else server.stop()
    }
  }

  async leftOver(): Promise<string[]> {
    return (await Promise.all(this.#members.map(({ server }) => server.leftOver()))).flat()
  }

  #member(name: string): Member {
    const { world, random, planted, latencyMs } = this.#context
    const driftRate = (random() * 2 - 1) * MOST_DRIFT
    const process = world.env({ name, driftRate, wallOffsetMs: this.#skew() })
    const kind = KINDS[Math.floor(random() * KINDS.length)] ?? 'volatile'
    const server = new MemberServer({ process, ledger: this.#ledger, kind, fault: planted })
    return { server, network: lossyStore(server.store, world, { server: process, latencyMs }) }
  }

  #disturbOne(forMs: number): void {
    const { random, world } = this.#context
    const member = this.#members[Math.floor(random() * this.#members.length)]
    if (!member) return
    const { server } = member
    const kind = random()
    if (kind < 0.25) pauseFor(world, server.process, forMs / 4)
    else if (kind < 0.4) server.dropClients()
    else if (kind < 0.5) server.process.wallOffsetMs = this.#skew()
    else this.#restart(server, forMs / 4)
  }

  /** Hangs, goes down and comes up again. Some go down once more at once. */
  #restart(server: MemberServer, mostMs: number): void {
    const { random, world, kept } = this.#context
    if (this.#isCalm || !this.#maySpare(server)) return
    const all = kept.filter((each) => server.mayKeep(each))
    const left = all[Math.floor(random() * all.length)] ?? 'all'
    const [hangsMs, downMs] = [this.#partOf(mostMs), this.#partOf(mostMs)]
    this.#failing.add(server)
    // Calls pile up at a server that hangs before it goes down.
    if (hangsMs > 0) server.process.pause()
    world.after(hangsMs, () => {
      server.process.resume()
      if (this.#isCalm) return
      this.#ledger.restarted(left)
      server.stop()
      world.after(downMs, () => {
        this.#failing.delete(server)
        server.start(left)
        if (random() < 0.3) world.after(random() * 100, () => this.#restart(server, mostMs))
      })
    })
  }

  /** Whether a majority stays up without it, and has not just lost everything. */
  #maySpare(server: MemberServer): boolean {
    if (this.#failing.has(server)) return false
    const ailing = this.#members.filter(
      (each) => each.server !== server && (this.#failing.has(each.server) || each.server.isBlank),
    )
    return ailing.length + 1 <= (this.#members.length - 1) / 2
  }

  /** Often nothing. */
  #partOf(ms: number): number {
    const part = this.#context.random()
    return part < 0.4 ? 0 : part * ms
  }

  #skew(): number {
    const { random, skewMs } = this.#context
    return Math.floor((random() * 2 - 1) * skewMs)
  }
}

/** A member as that process sees it: through its network, over one connection after the other. */
function connectedFrom(process: VirtualProcess, network: LossyStore): Store {
  const store = network.from(process)
  return {
    name: store.name,
    capabilities: store.capabilities,
    connect: (client: ClientContext) => new MemberConnection(store, client, process),
  }
}
