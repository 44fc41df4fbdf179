import type { Cancel, Env } from '../../base/env.js'
import { HoldfastError } from '../../base/errors.js'
import { nothing } from '../../base/nothing.js'
import type { Connection, Push, Store } from '../../contract/store.js'
import { Identity, isMember, MEMBERS_SPACE, type Sighting } from './identity.js'
import { Member } from './member.js'

/** How often members that do not vote are asked again, and those that waiters depend on. */
const LOOK_EVERY_MS = 1000
/** A set without a majority is not asked more often than this. */
const LEAST_PAUSE_MS = 50
/** How long to wait for the other members once a majority has answered, beyond three times that. */
const GRACE_MS = 5

export interface MembersOptions {
  readonly env: Env
  readonly stores: readonly Store[]
  readonly timeoutMs: number
  /** How long a member that lost its data does not vote. */
  readonly waitMs: number
}

export interface MembersContext {
  readonly clientId: string
  readonly space: string
  onPush(member: Member, news: Push): void
  /** A member failed, or does not vote any more. */
  onFailure(member: Member): void
  /** A member votes from now on. */
  onUp(member: Member): void
  /** The members whose answers somebody waits for. */
  awaited(): ReadonlySet<Member>
}

/** The members of a set, as one client sees them: which of them vote, and in which order. */
export class Members {
  readonly all: readonly Member[]
  readonly majority: number
  /** Whether all members can tell that others wait for a hold. */
  readonly tellWanted: boolean
  readonly #options: MembersOptions
  readonly #context: MembersContext
  readonly #identity: Identity
  #identifying: Promise<void> | null = null
  #readying: Promise<void> | null = null
  #identifiedAt = -Infinity
  #onMajority: (() => void)[] = []
  #refusal: HoldfastError | null = null
  #cancelLook: Cancel | null = null
  #isClosed = false

  constructor(options: MembersOptions, context: MembersContext) {
    const { env, stores, timeoutMs, waitMs } = options
    this.#options = options
    this.#context = context
    this.#identity = new Identity({ now: () => env.now(), newId: () => env.id(), waitMs })
    this.majority = Math.floor(stores.length / 2) + 1
    this.tellWanted = stores.every(({ capabilities }) => capabilities.tellsWanted !== undefined)
    const { clientId, space } = context
    this.all = stores.map((store, index) => {
      const push = (news: Push): void => context.onPush(member, news)
      const onFailure = (failed: Member): void => {
        this.watch()
        context.onFailure(failed)
      }
      const connect = (to: Store): Connection => to.connect({ id: clientId, space, push })
      const member: Member = new Member(index, store, { env, timeoutMs, onFailure }, connect)
      return member
    })
  }

  /** How long a member may be silent. */
  get timeoutMs(): number {
    return this.#options.timeoutMs
  }

  /** The members that vote. */
  get up(): Member[] {
    return this.all.filter((member) => member.isUp)
  }

  get hasMajority(): boolean {
    let count = 0
    for (const member of this.all) if (member.isUp) count++
    return count >= this.majority
  }

  /** The member in whose line claims of this resource wait; null: none votes. */
  usherOf(resource: string): Member | null {
    let usher: Member | null = null
    let lowest = Infinity
    for (const member of this.all) {
      if (!member.isUp) continue
      const rank = member.rankOf(resource)
      if (rank < lowest) {
        usher = member
        lowest = rank
      }
    }
    return usher
  }

  /**
   * Resolves when a majority votes; null: it does so already. Rejects, with the failure of each
   * member, when there is none.
   */
  ready(): Promise<void> | null {
    if (this.#refusal) return Promise.reject(this.#refusal)
    if (this.hasMajority && !this.#hasUnknown) return null
    // One for all callers: those that wait together choose the same usher.
    this.#readying ??= this.#becomeReady().finally(() => {
      this.#readying = null
    })
    return this.#readying
  }

  async #becomeReady(): Promise<void> {
    const { env } = this.#options
    const startedAt = env.now()
    const isPausing = startedAt - this.#identifiedAt < LEAST_PAUSE_MS
    // The first time until all have answered or failed, so that all clients choose the same usher.
    if (this.#hasUnknown) await this.#identify()
    else if (this.#identifying || !isPausing) await this.#majorityOf(this.#identify(), startedAt)
    if (this.#refusal) throw this.#refusal
    if (!this.hasMajority) throw this.unavailable()
  }

  get #hasUnknown(): boolean {
    return this.all.some(({ state }) => state === 'unknown')
  }

  /** Resolves when all are identified, or a majority is and the others take much longer. */
  #majorityOf(identified: Promise<void>, startedAt: number): Promise<void> {
    const { env } = this.#options
    return new Promise((resolve) => {
      const startGrace = (): void => void env.timer(this.graceMs(startedAt), resolve, { keepAlive: true })
      void identified.then(resolve)
      if (this.hasMajority) startGrace()
      else this.#onMajority.push(startGrace)
    })
  }

  /** The round trip to the slowest member. */
  get slowestMs(): number {
    return this.up.reduce((most, { latencyMs }) => Math.max(most, latencyMs), 0)
  }

  /** At least so long, or a few round trips where members are slow. */
  roundTripsMs(leastMs: number): number {
    return Math.max(leastMs, 3 * this.slowestMs)
  }

  /** How long to wait for the others after a majority has answered what was sent then. */
  graceMs(sentAt: number): number {
    return 3 * (this.#options.env.now() - sentAt) + GRACE_MS
  }

  /**
   * Asks all members that vote. Resolves when all have answered, or `enough` have and the others
   * take much longer. Rejects if there is no majority of answers.
   */
  async gather<T>(call: (member: Member) => Promise<T>, enough = this.majority): Promise<Map<Member, T>> {
    const answers = new Map<Member, T>()
    let refusal: unknown
    const ask = async (member: Member): Promise<boolean> => {
      try {
        answers.set(member, await call(member))
        return true
      } catch (error) {
        if (error instanceof HoldfastError && error.code !== 'STORE_UNAVAILABLE') refusal = error
        return false
      }
    }
    await this.tryEach(this.up, ask, enough)
    if (answers.size < this.majority) throw refusal ?? this.unavailable()
    return new Map(answers)
  }

  /**
   * Asks these members. Resolves when all have answered or failed, or it went well with `enough` of
   * them and the others take much longer.
   */
  tryEach(
    members: Iterable<Member>,
    call: (member: Member) => Promise<boolean>,
    enough = this.majority,
  ): Promise<void> {
    const { env } = this.#options
    const startedAt = env.now()
    const asked = [...members]
    return new Promise((resolve) => {
      let [pending, good] = [asked.length, 0]
      const settle = (isGood: boolean): void => {
        pending--
        if (isGood) good++
        if (pending === 0) resolve()
        else if (isGood && good === enough) env.timer(this.graceMs(startedAt), resolve, { keepAlive: true })
      }
      if (pending === 0) resolve()
      for (const member of asked) call(member).then(settle, () => settle(false))
    })
  }

  /** Asks those that do not vote. Resolves when each has answered or failed; never rejects. */
  async askAll(): Promise<void> {
    if (this.up.length < this.all.length) await this.#identify()
  }

  /** One at a time; never rejects. */
  #identify(): Promise<void> {
    this.#identifying ??= this.#identifyAll().finally(() => {
      this.#identifying = null
      this.#identifiedAt = this.#options.env.now()
      this.#onMajority = []
      this.watch()
    })
    return this.#identifying
  }

  async #identifyAll(): Promise<void> {
    this.#refusal = null
    const unknown = this.all.filter((member) => !member.isUp)
    const connections = new Map(unknown.map((member) => [member, this.#connect(member.store)]))
    const sightings: Sighting[] = []
    const look = async (member: Member, connection: Connection): Promise<void> => {
      const sighting = await this.#within(this.#identity.look(member, connection))
      // Those that vote do not wait for the others.
      if (isMember(sighting)) this.#take(sighting)
      sightings.push(sighting)
    }
    await Promise.all(
      [...connections].map(([member, connection]) =>
        look(member, connection).catch((error: unknown) => this.#onFailure(member, error)),
      ),
    )
    const others = this.all.filter((member) => !unknown.includes(member))
    const settling = this.#identity.settle(sightings, sightings.length === this.all.length, others.length > 0)
    const failure = await this.#within(settling).then(
      () => null,
      (error: unknown) => error,
    )
    for (const sighting of sightings) this.#take(sighting, failure)
    for (const connection of connections.values()) void connection.close().catch(nothing)
  }

  #connect(store: Store): Connection {
    const { env } = this.#options
    return store.connect({ id: env.id(), space: MEMBERS_SPACE, push: nothing })
  }

  /** What a sighting says about its member. */
  #take(sighting: Sighting, failure: unknown = null): void {
    const { member, link, record } = sighting
    if (member.isUp) return
    if (!isMember(sighting) || !record) {
      if (failure !== null) return this.#onFailure(member, failure)
      const text = record
        ? 'it has lost its data, or is new, and votes when the longest lease is over'
        : 'the set is new, and is founded when all its members answer'
      member.leave(new Error(text))
      this.#context.onFailure(member)
      return
    }
    const twin = this.all.find(({ id }) => id === record.id)
    if (twin && twin !== member) {
      const message = `${twin.label} and ${member.label} of the quorum are the same server; give each member its own server`
      this.#refusal = new HoldfastError('INVALID_ARGUMENT', message, { store: 'quorum' })
      return
    }
    member.identified(record.id, link)
    this.#context.onUp(member)
    if (!this.hasMajority) return
    for (const tell of this.#onMajority.splice(0)) tell()
  }

  #onFailure(member: Member, error: unknown): void {
    member.rest(error)
    this.#context.onFailure(member)
  }

  async #within<T>(work: Promise<T>): Promise<T> {
    const { env, timeoutMs } = this.#options
    return new Promise((resolve, reject) => {
      const fail = (): void => reject(new Error(`no answer within ${Math.round(timeoutMs)} ms`))
      const cancel = env.timer(timeoutMs, fail, { keepAlive: true })
      work.then(resolve, reject).finally(cancel)
    })
  }

  /** Looks at members that do not vote, and at those that waiters depend on, as long as needed. */
  watch(): void {
    if (this.#isClosed || this.#cancelLook || !this.#isToWatch) return
    const { env } = this.#options
    const look = (): void => {
      this.#cancelLook = null
      if (this.#isClosed) return
      this.#probeSilent()
      if (this.up.length < this.all.length) void this.#identify()
      this.watch()
    }
    this.#cancelLook = env.timer(LOOK_EVERY_MS, look, { keepAlive: false })
  }

  get #isToWatch(): boolean {
    return this.up.length < this.all.length || this.#context.awaited().size > 0
  }

  /** Waiters get no answer from a member that stands still: it is asked, so that it can fail. */
  #probeSilent(): void {
    const since = this.#options.env.now() - LOOK_EVERY_MS
    for (const member of this.#context.awaited())
      if (member.heardAt < since) member.call((connection) => connection.pulse([])).catch(nothing)
  }

  /** The error where there is no majority: which members failed, and how. */
  unavailable(): HoldfastError {
    const failed = this.all.filter((member) => !member.isUp)
    const failures = this.describe() || 'too few members answered in time'
    const message = `The quorum has no majority: ${failures}; check these servers (${this.majority} of ${this.all.length} are needed)`
    return new HoldfastError('STORE_UNAVAILABLE', message, {
      store: 'quorum',
      retryable: true,
      cause: failed[0]?.failure,
    })
  }

  /** The members that do not vote, and why: `member 2 (redis): connect ECONNREFUSED`. */
  describe(): string {
    return this.all
      .filter((member) => !member.isUp)
      .map(({ label, failure }) => `${label}: ${reason(failure)}`)
      .join('; ')
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelLook?.()
    await Promise.allSettled(this.all.map(({ connection }) => connection.close()))
  }
}

function reason(failure: unknown): string {
  if (failure instanceof Error) return failure.message
  return failure === null ? 'not asked yet' : String(failure)
}
