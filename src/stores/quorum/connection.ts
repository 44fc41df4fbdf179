import { formatMs } from '../../base/duration.js'
import type { Env } from '../../base/env.js'
import { HoldfastError, invalid } from '../../base/errors.js'
import { EXCLUSIVE } from '../../contract/constants.js'
import type {
  Beat,
  BeatReply,
  ClaimReply,
  ClaimRequest,
  ClaimView,
  ClientContext,
  Connection,
  Finding,
  InspectQuery,
  LineView,
  Push,
  StateChange,
  StateOutcome,
  StateValue,
  StateView,
} from '../../contract/store.js'
import { checkMembers } from './check.js'
import { QuorumClaim, type QuorumClaimContext } from './claim.js'
import { Contention } from './contention.js'
import { FenceHints } from './fence-hints.js'
import { engineId, Inspection } from './inspection.js'
import type { Member } from './member.js'
import { MemberReleases } from './member-releases.js'
import { Members, type MembersOptions } from './members.js'
import { pulseClaims } from './pulse.js'
import { Register } from './register.js'

/** With fewer claims, those that have lapsed are not looked for. */
const LEAST_SWEPT = 1000

export interface QuorumOptionsInMs extends MembersOptions {
  readonly env: Env
  /** No lease may be longer. */
  readonly longestLeaseMs: number
}

/** One client's connection to all members. */
export class QuorumConnection implements Connection {
  readonly #options: QuorumOptionsInMs
  readonly #client: ClientContext
  readonly #members: Members
  readonly #releases: MemberReleases
  readonly #register: Register
  readonly #inspection: Inspection
  readonly #context: QuorumClaimContext
  /** By the id that the engine gave. */
  readonly #claims = new Map<string, QuorumClaim>()
  readonly #watched = new Set<string>()
  #nonces = 0
  #sweepAt = LEAST_SWEPT
  #isClosed = false

  constructor(options: QuorumOptionsInMs, client: ClientContext) {
    const { env } = options
    this.#options = options
    this.#client = client
    this.#members = new Members(options, {
      clientId: client.id,
      space: client.space,
      onPush: (member, news) => this.#onPush(member, news),
      onFailure: (member) => this.#onFailure(member),
      onUp: (member) => this.#releases.flush(member),
      awaited: () => this.#awaited(),
    })
    this.#releases = new MemberReleases(env, this.#members)
    this.#register = new Register(env, this.#members)
    this.#inspection = new Inspection(env, this.#members)
    this.#context = {
      env,
      members: this.#members,
      hints: new FenceHints(env),
      contention: new Contention(env),
      newNonce: (id) => `${id}.${++this.#nonces}`,
      giveBack: (member, resource, nonce) => this.#releases.giveBack(member, resource, nonce),
      onRefused: (claim) => this.#forget(claim),
      onGranted: (claim) => this.#granted(claim),
      onLost: (claim) => this.#lost(claim),
    }
  }

  claim(request: ClaimRequest): Promise<ClaimReply> {
    if (this.#isClosed) return Promise.reject(closed())
    const known = this.#claims.get(request.id)
    if (known) return known.answer.promise.then((reply) => (known.phase === 'over' ? reply : known.reply()))
    if (request.capacity !== EXCLUSIVE) return Promise.reject(noSemaphores(request.resource))
    const { leaseMs, presenceMs } = request
    if (Math.max(leaseMs, presenceMs) > this.#options.longestLeaseMs)
      return Promise.reject(this.#tooLong(request.resource))
    this.#sweep()
    const claim = new QuorumClaim(request, this.#context)
    this.#claims.set(request.id, claim)
    this.#start(claim)
    return claim.answer.promise
  }

  #start(claim: QuorumClaim): void {
    const ready = this.#members.ready()
    const { adopts, resource } = claim.request
    if (!ready && !adopts) return claim.start()
    const find = async (): Promise<void> => {
      await ready
      const found =
        adopts && claim.phase !== 'over' ? await this.#inspection.find(resource, adopts.id) : undefined
      // The client may have given it up meanwhile: then the hold stays where it is.
      if (claim.phase !== 'over') claim.start(found)
    }
    find().catch((error: unknown) => claim.fail(error))
  }

  #forget(claim: QuorumClaim): void {
    const { id } = claim.request
    if (this.#claims.get(id) === claim) this.#claims.delete(id)
  }

  async pulse(beats: readonly Beat[]): Promise<BeatReply[]> {
    await this.#ready()
    if (beats.length === 0) {
      await this.#members.gather((member) => member.call((connection) => connection.pulse([])))
      return []
    }
    for (const { leaseMs, resource } of beats)
      if (leaseMs > this.#options.longestLeaseMs) throw this.#tooLong(resource)
    return pulseClaims(this.#options.env, this.#members, this.#claims, beats)
  }

  async release(_resource: string, id: string): Promise<boolean> {
    this.#throwIfClosed()
    const claim = this.#claims.get(id)
    if (!claim) return false
    this.#forget(claim)
    return this.#releases.release(claim)
  }

  async evict(resource: string, fence: number | null): Promise<ClaimView[]> {
    await this.#ready()
    // The members may know an own hold by later fences than its first.
    const own = [...this.#claims.values()].find(
      (claim) => claim.resource === resource && claim.fence === fence,
    )
    return this.#inspection.evict(resource, (claim) =>
      own ? claim.id === own.request.id : fence === null || claim.fence === fence,
    )
  }

  async cancel(resource: string, id: string): Promise<ClaimView[]> {
    await this.#ready()
    return this.#inspection.cancel(resource, id)
  }

  async resize(resource: string): Promise<void> {
    throw noSemaphores(resource)
  }

  async read(key: string, watch: boolean): Promise<StateValue | null> {
    await this.#ready()
    if (watch) this.#watched.add(key)
    return this.#register.read(key, watch)
  }

  unwatch(key: string): void {
    this.#watched.delete(key)
    for (const { connection } of this.#members.all) connection.unwatch?.(key)
  }

  async write(change: StateChange): Promise<StateOutcome> {
    await this.#ready()
    return this.#register.write(change)
  }

  async *states(prefix: string): AsyncIterable<StateView> {
    await this.#ready()
    yield* await this.#register.list(prefix)
  }

  async *inspect(query: InspectQuery): AsyncIterable<LineView> {
    await this.#ready()
    yield* await this.#inspection.lines(query)
  }

  async spaces(): Promise<string[]> {
    await this.#ready()
    return this.#inspection.spaces()
  }

  async check(): Promise<Finding[]> {
    this.#throwIfClosed()
    await this.#members.askAll()
    return checkMembers(this.#options.env, this.#members)
  }

  trouble(): string | null {
    return this.#members.describe() || null
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const claim of this.#claims.values()) claim.end()
    this.#claims.clear()
    // A majority has answered the last release; the waiters may stand in another member's line.
    await this.#releases.allSent()
    await this.#members.close()
  }

  #onPush(member: Member, news: Push): void {
    if (news.type === 'gap') {
      // What a holder is told by one member only does not end its hold.
      if (this.#watched.size > 0 || this.#awaited().has(member)) this.#client.push(news)
      return
    }
    if (news.type === 'state') {
      // All members tell of a change; the client wants to hear of it once.
      if (this.#watched.delete(news.key)) this.#client.push(news)
      return
    }
    const { resource, id: nonce } = news
    const id = engineId(nonce)
    const claim = this.#claims.get(id)
    if (news.type === 'granted') {
      // Another run of the server may have granted it.
      if (!member.isUp) return
      const isKnown = claim?.voting.onGranted(member, nonce, news.fence) === true
      if (!isKnown) this.#releases.giveBack(member, resource, nonce)
    } else if (news.type === 'lost') claim?.voting.onRevoked(member, nonce)
    else if (claim?.phase === 'held') this.#client.push({ type: 'wanted', resource, id })
  }

  #onFailure(member: Member): void {
    for (const claim of [...this.#claims.values()]) claim.onFailure(member)
  }

  #awaited(): ReadonlySet<Member> {
    const awaited = new Set<Member>()
    for (const { phase, usher } of this.#claims.values())
      if (usher && (phase === 'line' || phase === 'collecting')) awaited.add(usher)
    return awaited
  }

  #granted({ request: { resource, id, maxHoldMs, leaseMs, presenceMs }, fence }: QuorumClaim): void {
    const granted = { type: 'granted', resource, id, fence } as const
    // The engine counts the place in line. Where that was longer than the lease, or the members
    // count `maxHold` from different moments, only an answer tells how long the hold lasts.
    const isUnconfirmed = maxHoldMs !== null || presenceMs > leaseMs
    this.#client.push(isUnconfirmed ? { ...granted, isUnconfirmed } : granted)
  }

  /** Forgets holds that have lapsed long ago: the engine releases only what it still has. */
  #sweep(): void {
    if (this.#claims.size < this.#sweepAt) return
    const before = this.#options.env.now() - this.#options.longestLeaseMs
    for (const claim of this.#claims.values())
      if (claim.phase === 'held' && claim.votes.coveredUntil < before) {
        claim.end()
        this.#forget(claim)
      }
    this.#sweepAt = Math.max(LEAST_SWEPT, 2 * this.#claims.size)
  }

  #lost(claim: QuorumClaim): void {
    const { resource, id } = claim.request
    if (this.#claims.get(id) !== claim) return
    this.#claims.delete(id)
    this.#client.push({ type: 'lost', resource, id })
  }

  #ready(): Promise<void> | null {
    this.#throwIfClosed()
    return this.#members.ready()
  }

  #throwIfClosed(): void {
    if (this.#isClosed) throw closed()
  }

  #tooLong(resource: string): HoldfastError {
    const longest = formatMs(this.#options.longestLeaseMs)
    const message = `A lease or presence on this quorum is at most ${longest}; ask for a shorter one, or raise longestLease of quorum() for all clients`
    return invalid(message, resource)
  }
}

function closed(): HoldfastError {
  return new HoldfastError('CLOSED', 'This connection to the quorum is closed', { store: 'quorum' })
}

function noSemaphores(resource: string): HoldfastError {
  const message = `'${resource}' cannot be a semaphore or barrier on a quorum: a majority does not bound a count; use one of its members for it, or several mutexes`
  return new HoldfastError('UNSUPPORTED', message, { store: 'quorum', resource })
}
