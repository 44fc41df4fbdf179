import { EXCLUSIVE } from '../../../contract/constants.js'
import type {
  Beat,
  BeatReply,
  ClaimReply,
  ClaimRequest,
  ClientContext,
  Connection,
  StateChange,
  StateOutcome,
  Store,
} from '../../../contract/store.js'
import { memory } from '../../../stores/memory/index.js'
import type { VirtualProcess } from '../../virtual-env.js'
import type { MemberLedger } from './ledger.js'
import { Session, type SessionServer } from './session.js'

/**
 * What a restart leaves of the data: `all`; `states`: all but the locks; `counter`: only the fence
 * counter; `nothing`.
 */
export type Kept = 'all' | 'states' | 'counter' | 'nothing'

/**
 * What a member says about its restarts:
 * - `volatile`: they may lose data, and each run has a name
 * - `durable`: they lose nothing, but a connection tells that it was lost
 * - `steady`: they lose nothing, and nothing is told
 */
export type MemberKind = 'volatile' | 'durable' | 'steady'

/** Changes how a member behaves, to see whether the simulation notices. */
export interface MemberFault {
  /** Wraps the store of each run. */
  alter?(store: Store, process: VirtualProcess): Store
  /** Clients cannot tell that it has restarted. */
  readonly hidesRestarts?: boolean
}

interface MemberContext {
  readonly process: VirtualProcess
  readonly ledger: MemberLedger
  readonly kind: MemberKind
  readonly fault: MemberFault
}

interface KeptState {
  readonly value: string
  /** By the member's monotonic clock; null: never. */
  readonly expires: number | null
}

/** One server of a quorum: a memory store that can go down and come back with less than it had. */
export class MemberServer implements SessionServer {
  readonly process: VirtualProcess
  /** The server as the network reaches it: each connection is a session. */
  readonly store: Store
  readonly #context: MemberContext
  readonly #sessions = new Set<Session>()
  /** The last session of each client: the store sends pushes over that one. */
  readonly #newest = new Map<string, Session>()
  readonly #spaces = new Set<string>()
  readonly #states = new Map<string, Map<string, KeptState>>()
  #present: Store
  #run = 1
  #isUp = true

  constructor(context: MemberContext) {
    this.#context = context
    this.process = context.process
    this.#present = this.#newStore()
    const { answersAtOnce: _, ...capabilities } = this.#present.capabilities
    this.store = { name: this.name, capabilities, connect: (client) => new Session(this, client) }
  }

  get name(): string {
    return this.process.name
  }

  get isUp(): boolean {
    return this.#isUp
  }

  get tellsRun(): boolean {
    return this.#context.kind !== 'steady'
  }

  get runName(): string | null {
    const { kind, fault } = this.#context
    return kind === 'volatile' ? `${this.name} ${fault.hidesRestarts ? 1 : this.#run}` : null
  }

  /** Nothing has been written to it, or not since it has lost everything. */
  get isBlank(): boolean {
    return this.#states.size === 0
  }

  /** Whether a restart may keep that, by what the server says about itself. */
  mayKeep(kept: Kept): boolean {
    const { kind, fault } = this.#context
    // If clients should not notice it, it keeps what they would miss.
    if (fault.hidesRestarts) return kept === 'states'
    if (kind === 'volatile' || kept === 'all') return true
    // A disk may be replaced. Then all that was on it is gone.
    return kind === 'durable' && kept !== 'states'
  }

  enter(session: Session): Connection {
    this.#spaces.add(session.client.space)
    this.#sessions.add(session)
    this.#newest.set(keyOf(session), session)
    return this.#present.connect(session.client)
  }

  leave(session: Session): boolean {
    this.#sessions.delete(session)
    return this.#newest.get(keyOf(session)) === session && this.#newest.delete(keyOf(session))
  }

  /** Breaks every connection. */
  dropClients(): void {
    const sessions = [...this.#sessions]
    this.#sessions.clear()
    this.#newest.clear()
    for (const session of sessions) session.end({ isHidden: this.#context.fault.hidesRestarts ?? false })
  }

  stop(): void {
    this.#isUp = false
    this.dropClients()
  }

  start(kept: Kept): void {
    this.#run++
    this.#isUp = true
    if (kept === 'all') return
    const old = this.#present
    const states = new Map(this.#states)
    this.#present = this.#newStore()
    this.#states.clear()
    if (kept === 'nothing') return
    for (const space of this.#spaces) carryCounter(space, old, this.#present)
    if (kept === 'states') for (const [space, values] of states) this.#carryStates(space, values)
  }

  noteClaim(request: ClaimRequest, reply: ClaimReply): void {
    this.#context.ledger.claimed(this.name, request, reply)
  }

  noteBeats(beats: readonly Beat[], replies: readonly BeatReply[]): void {
    this.#context.ledger.pulsed(beats, replies)
  }

  noteWrite(space: string, { key, retentionMs }: StateChange, { written, current }: StateOutcome): void {
    if (!written) return
    const values = this.#states.get(space) ?? new Map<string, KeptState>()
    this.#states.set(space, values)
    const expires = retentionMs === null ? null : this.process.now() + retentionMs
    if (current) values.set(key, { value: current.value, expires })
    else values.delete(key)
  }

  /** The lines that have claims, by the store itself and not over the network. */
  async leftOver(): Promise<string[]> {
    const names: string[] = []
    for (const space of this.#spaces) {
      const looker = this.#present.connect(silent(space))
      for await (const { resource, claims } of looker.inspect({ prefix: '' }))
        names.push(`${this.name}: ${space}/${resource} (${claims.length})`)
      await looker.close()
    }
    return names
  }

  #newStore(): Store {
    const { process, fault } = this.#context
    const store = memory({ env: process })
    return fault.alter?.(store, process) ?? store
  }

  #carryStates(space: string, values: ReadonlyMap<string, KeptState>): void {
    const now = this.process.now()
    const writer = this.#present.connect(silent(space))
    for (const [key, { value, expires }] of values) {
      const retentionMs = expires === null ? null : expires - now
      if (retentionMs !== null && retentionMs <= 0) continue
      const change = { key, expect: null, value, retentionMs }
      void writer.write(change)
      this.noteWrite(space, change, { written: true, current: { value, version: 0 } })
    }
    void writer.close()
  }
}

/** Lets the counter of the new store begin where that of the old one is. */
function carryCounter(space: string, from: Store, to: Store): void {
  const last = nextFence(from.connect(silent(space)), 0)
  nextFence(to.connect(silent(space)), last)
}

function nextFence(connection: Connection, floor: number): number {
  const resource = 'the counter'
  const times = { leaseMs: 1, presenceMs: 1, maxHoldMs: null }
  const amounts = { permits: EXCLUSIVE, capacity: EXCLUSIVE, block: 1 }
  const reply = connection.claim({ resource, id: 'it', mode: 'try', floor, info: '', ...times, ...amounts })
  void connection.release(resource, 'it')
  void connection.close()
  if (reply instanceof Promise || reply.status !== 'granted') throw new Error('The counter is not free')
  return reply.fence
}

/** The store knows a client by its id, whichever of its connections a call comes over. */
function keyOf({ client }: Session): string {
  return `${client.space}/${client.id}`
}

function silent(space: string): ClientContext {
  return { id: 'operator', space, push() {} }
}
