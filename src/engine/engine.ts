import { hostname } from 'node:os'
import { deferred } from '../base/deferred.js'
import type { Env } from '../base/env.js'
import { HoldfastError } from '../base/errors.js'
import { nothing } from '../base/nothing.js'
import type {
  Beat,
  Capabilities,
  ClaimView,
  Connection,
  Finding,
  GrantedPush,
  Held,
  InspectQuery,
  LineView,
  Push,
  Store,
} from '../contract/store.js'
import { Acquisition } from './acquisition.js'
import { Baton } from './baton.js'
import { Calls, Heard } from './calls.js'
import { Claim, type ClaimListener, type ClaimSpec, driftMs, type Entry } from './claim.js'
import type { Cohort } from './cohort.js'
import { Cohorts } from './cohorts.js'
import { Drain } from './drain.js'
import { Floors } from './floors.js'
import { heldFrames } from './flow.js'
import { KeepAlive } from './keep-alive.js'
import type { Limits } from './limits.js'
import { Pulse } from './pulse.js'
import { States } from './states.js'

/** How long a failed caller waits to be told who holds the lock. */
const GLANCE_MS = 250

export interface EngineOptions {
  readonly env: Env
  readonly space: string
  readonly storeTimeoutMs: number
}

/** A store that has not answered the releases has this time to close its connections. */
const LEAST_CLOSE_MS = 1500

/** One client of a store: its claims, its pulse, its connection. */
export class Engine {
  readonly env: Env
  readonly space: string
  readonly capabilities: Capabilities
  readonly storeName: string
  readonly calls: Calls
  readonly pulse: Pulse
  readonly connection: Connection
  readonly states: States
  readonly keepAlive: KeepAlive
  readonly #clientId: string
  readonly #process = { host: hostname(), pid: process.pid }
  readonly #plainInfo = JSON.stringify(this.#process)
  readonly #cohorts: Cohorts
  readonly #floors = new Floors()
  /** By resource: the looks that are under way. */
  readonly #glances = new Map<string, Promise<LineView | null>>()
  /** By id: everything that this client may have in a line. */
  readonly #claims = new Map<string, Claim>()
  /** The ids of claims that nobody wants any more, while the store is told so. */
  readonly #withdrawing = new Set<string>()
  /** How many releases and withdrawals are on their way: close() waits for them. */
  #leaving = 0
  #allHaveLeft: () => void = nothing
  /** Resources of which a hold has ended here without a release, and whose waiters are about to ask. */
  readonly #lapsed = new Set<string>()
  #nextId = 1
  #closing: Promise<void> | null = null
  #drain: Drain | null = null

  constructor(store: Store, options: EngineOptions) {
    this.env = options.env
    this.space = options.space
    this.storeName = store.name
    this.capabilities = store.capabilities
    this.calls = new Calls(this.env, {
      storeName: store.name,
      storeTimeoutMs: options.storeTimeoutMs,
      trouble: () => this.connection.trouble?.() ?? null,
    })
    this.keepAlive = new KeepAlive(this.env)
    this.#clientId = this.env.id()
    this.#cohorts = new Cohorts(this.keepAlive)
    this.connection = store.connect({
      id: this.#clientId,
      space: options.space,
      push: (news) => this.#onPush(news),
    })
    this.pulse = new Pulse({
      calls: this.calls,
      connection: this.connection,
      env: this.env,
      capabilities: this.capabilities,
      claims: () => this.#claims.values(),
      claimOf: (id) => this.#claims.get(id),
      expire: (claim) => this.#expire(claim),
      withdraw: (claim) => void this.withdraw(claim.resource, claim.id),
    })
    this.states = new States({ env: this.env, calls: this.calls, connection: this.connection })
  }

  /** The first entry of a held claim; null if it was not to be had at once and the limits say not to wait. */
  acquire(spec: ClaimSpec, limits: Limits): Promise<Entry | null> {
    this.throwIfClosed()
    return new Acquisition(this, spec, limits).run()
  }

  newClaim(spec: ClaimSpec, listener: ClaimListener): Claim {
    return new Claim(spec, this.#infoOf(spec), listener, this.newId())
  }

  /** Where a claim waits behind its neighbours; null: it stands in the store's line by itself. */
  cohortOf(claim: Claim, { waitMs }: Limits): Cohort | null {
    const isOwn = claim.spec.isPassedOn !== true || waitMs === 0 || this.#mostFences < 2
    return isOwn ? null : this.#cohorts.of(claim)
  }

  get #mostFences(): number {
    return this.capabilities.maxBlock ?? Infinity
  }

  /** For a claim that is about to be sent, and could use so many fences. */
  newBaton(fences: number): Baton {
    return new Baton(fences, this.#mostFences)
  }

  /** Whoever has no owner of its own is shown by its id. Most claims tell the same, which is put together once. */
  #infoOf({ owner, label }: ClaimSpec): string {
    const { host, pid } = this.#process
    return owner === null && label === null ? this.#plainInfo : JSON.stringify({ owner, host, pid, label })
  }

  newId(): string {
    return `${this.#clientId}:${this.#nextId++}`
  }

  register(claim: Claim): void {
    this.#claims.set(claim.id, claim)
  }

  /** Whether anybody here wants what became of that claim. */
  stands(id: string): boolean {
    return this.#claims.has(id)
  }

  /** Unless a neighbour stands for it by now. */
  forget(claim: Claim): void {
    if (this.#claims.get(claim.id) === claim) this.#claims.delete(claim.id)
    this.#drain?.look()
  }

  floorOf(resource: string): number {
    return this.#floors.of(resource)
  }

  noteFence({ claim, fence }: Entry): void {
    this.#floors.note(claim.resource, fence)
  }

  /** Takes back whatever became of a claim that nobody wants any more. Never rejects: it lapses by itself in the end. */
  async withdraw(resource: string, id: string): Promise<void> {
    const deadline = this.env.now() + this.calls.storeTimeoutMs
    this.#withdrawing.add(id)
    await this.#seeOff(deadline, () => this.connection.release(resource, id)).catch(() => {})
    this.#withdrawing.delete(id)
  }

  /**
   * Gives a hold back. true: it was held until now; false: it had been lost before.
   * Rejects when the store cannot be reached; the hold then ends with its lease.
   */
  release(claim: Claim): Promise<boolean> {
    const wasHeld = this.checkValidity(claim)
    this.forget(claim)
    if (!wasHeld) {
      if (!this.stands(claim.id)) void this.withdraw(claim.resource, claim.id)
      return Promise.resolve(false)
    }
    claim.end()
    // Before anything is sent: what is on its way back is passed on no more.
    if (claim.listener.passOn()) return claim.handedOn ?? Promise.resolve(true)
    const deadline = Math.min(claim.validUntil, this.env.now() + this.calls.storeTimeoutMs)
    const leaving = this.#giveBack(claim.resource, claim.id, deadline)
    claim.listener.onReleased()
    return leaving
  }

  /**
   * Passes a hold on to the neighbour who comes next in the store's own line, which gives its own place there up. The store goes on to see the hold
   * of the first one. false: there is nobody to have it.
   */
  passToHeir(claim: Claim): boolean {
    const { baton } = claim
    if (!baton || claim.isAboutToEnd(this.env.now())) return false
    for (let id = baton.nextHeir(); id !== undefined; id = baton.nextHeir()) {
      const heir = this.#claims.get(id)
      // Who has given up is on its way out of the line.
      if (!heir) continue
      if (!heir.canInherit(claim)) return false
      this.forget(heir)
      heir.listener.takeOver(claim)
      // Whoever leaves waits for the store, as ever: so neighbours who ask again at once do so together, and stay neighbours.
      claim.handedOn = this.#giveUpPlace(claim, id)
      return true
    }
    return false
  }

  /** Never rejects. A store that does not know the place any more may have forgotten the hold, too: it is asked at once. */
  async #giveUpPlace({ resource, id: holdId, validUntil }: Claim, id: string): Promise<boolean> {
    const deadline = Math.min(validUntil, this.env.now() + this.calls.storeTimeoutMs)
    const wasThere = await this.#giveBack(resource, id, deadline).catch(() => false)
    const bearer = this.#claims.get(holdId)
    if (!wasThere && bearer) this.pulse.hurry(bearer)
    return true
  }

  /** Whether it was there. */
  #giveBack(resource: string, id: string, deadline: number): Promise<boolean> {
    return this.#seeOff(deadline, (attempt) => {
      const releasing = this.connection.release(resource, id)
      // Not there at the second attempt: the first one did it, and only its answer got lost.
      return attempt === 1 ? releasing : releasing.then(() => true)
    })
  }

  async #seeOff(deadline: number, release: (attempt: number) => Promise<boolean>): Promise<boolean> {
    this.#leaving++
    try {
      return await this.calls.repeated(deadline, release)
    } finally {
      if (--this.#leaving === 0) this.#allHaveLeft()
    }
  }

  /** One hold that stands on the claim is given back; with the last one, the claim itself is. */
  leave(entry: Entry): Promise<boolean> {
    const { claim } = entry
    claim.leave(entry)
    this.#drain?.look()
    return claim.isEntered ? this.#leaveOthers(claim) : this.release(claim)
  }

  async #leaveOthers(claim: Claim): Promise<boolean> {
    if (!this.checkValidity(claim)) return false
    try {
      await this.shrink(claim)
      return true
    } catch (error) {
      // The others on it may have left meanwhile, and the claim with them.
      if (claim.phase !== 'held') return claim.phase === 'ended'
      throw error
    }
  }

  /** Gives back the permits that none of the holds on the claim needs any more. */
  async shrink(claim: Claim): Promise<void> {
    const needed = claim.neededPermits
    if (needed >= claim.permits) return
    // Before it is sent: from now on nobody here may rely on more, whether or not the call gets through.
    claim.permits = needed
    await this.renew(claim, {})
  }

  /** Whether a claim is held and valid at this moment. If its time has run out, that is told at once. */
  checkValidity(claim: Claim): boolean {
    const isValid = claim.isValid(this.env.now())
    if (!isValid) this.#expire(claim)
    return isValid
  }

  /** A pulse for one hold, with what it has to say beyond "I am here". Repeated while the hold is valid. */
  async renew(claim: Claim, extra: Partial<Beat>): Promise<Held> {
    // What was asked for this hold is not the next one's: a longer lease, fewer permits, a text that lets others take it.
    claim.keep()
    return this.calls.repeated(
      Math.min(claim.validUntil, this.env.now() + this.calls.storeTimeoutMs),
      async () => {
        const sentAt = this.env.now()
        const [reply] = await this.connection.pulse([{ ...claim.beat(), ...extra }])
        if (reply?.status !== 'held' || reply.fence !== claim.grant) {
          claim.lose('the store no longer has it; it lapsed, or was broken or taken over')
          throw claim.lostBecause ?? notHeld(claim.resource)
        }
        if (claim.phase !== 'held') throw claim.lostBecause ?? notHeld(claim.resource)
        claim.acknowledgedAt = Math.max(claim.acknowledgedAt, sentAt)
        this.pulse.held(claim, reply.fence, sentAt + reply.leaseMs - driftMs(reply.leaseMs))
        return reply
      },
    )
  }

  /** Makes sure that the store is there. */
  async reach(): Promise<void> {
    await this.calls.repeated(this.env.now() + this.calls.storeTimeoutMs, () => this.connection.pulse([]))
  }

  async evict(resource: string, fence: number | null): Promise<ClaimView[]> {
    this.throwIfClosed()
    const grant = fence === null ? null : this.#grantOf(resource, fence)
    const call = (): Promise<ClaimView[]> => this.connection.evict(resource, grant)
    // Without a fence it must not be repeated: if only the answer was lost, the second attempt would rob the next holder.
    if (fence === null) return this.calls.once(call)
    return this.calls.repeated(this.env.now() + this.calls.storeTimeoutMs, call)
  }

  async resize(resource: string, declared: number, capacity: number): Promise<void> {
    this.throwIfClosed()
    const deadline = this.env.now() + this.calls.storeTimeoutMs
    await this.calls.repeated(deadline, () => this.connection.resize(resource, declared, capacity))
  }

  /** How long the store took to answer; rejects if it does not within `timeoutMs`. */
  async ping(timeoutMs: number): Promise<number> {
    this.throwIfClosed()
    const startedAt = this.env.now()
    // Answers to other calls do not count: who asks for a ping wants one in time.
    await this.calls.repeated(startedAt + timeoutMs, () => this.connection.pulse([]), new Heard())
    return this.env.now() - startedAt
  }

  async spaces(): Promise<string[]> {
    this.throwIfClosed()
    const { connection } = this
    if (!connection.spaces) {
      const message = `The ${this.storeName} store cannot list its spaces; name one`
      throw new HoldfastError('UNSUPPORTED', message, { store: this.storeName })
    }
    const list = (): Promise<string[]> => connection.spaces?.() ?? Promise.resolve([])
    return (await this.calls.repeated(this.env.now() + this.calls.storeTimeoutMs, list)).sort()
  }

  async check(): Promise<Finding[]> {
    this.throwIfClosed()
    const { connection } = this
    return connection.check ? this.calls.once(() => connection.check?.() ?? Promise.resolve([])) : []
  }

  /** The line of exactly that name; null: nobody is in it, and nothing is known of its capacity. */
  async line(resource: string): Promise<LineView | null> {
    this.throwIfClosed()
    return this.calls.repeated(this.env.now() + this.calls.storeTimeoutMs, () => this.#firstLine(resource))
  }

  async #firstLine(resource: string): Promise<LineView | null> {
    for await (const line of this.connection.inspect({ prefix: '', resource })) return this.#asKnownHere(line)
    return null
  }

  /**
   * The line as one quick look shows it, for the message of an error; null where it cannot tell. Many callers
   * whose wait ends together share one look.
   */
  glance(resource: string): Promise<LineView | null> {
    const known = this.#glances.get(resource)
    if (known) return known
    const look = this.calls
      .within(GLANCE_MS, () => this.#firstLine(resource), new Heard())
      .catch(() => null)
      .finally(() => this.#glances.delete(resource))
    this.#glances.set(resource, look)
    return look
  }

  /** The lines, one by one; each has the store's time-out to come. */
  async *inspect(query: InspectQuery): AsyncGenerator<LineView, void, void> {
    this.throwIfClosed()
    const lines = this.connection.inspect(query)[Symbol.asyncIterator]()
    for (;;) {
      const line = await this.calls.once(() => lines.next())
      if (line.done) return
      let isEnough = true
      try {
        yield this.#asKnownHere(line.value)
        isEnough = false
      } finally {
        if (isEnough) await lines.return?.()
      }
    }
  }

  /** Of our own claims we know which hold stands on a grant now, and which of them are given up. */
  #asKnownHere(line: LineView): LineView {
    const wanted = line.claims.filter((view) => !this.#isGivenUp(view))
    const claims = wanted.map((view) => {
      const claim = view.fence === null ? undefined : this.#claims.get(view.id)
      // Of readers there may be many on one grant: it is shown as everybody else sees it.
      if (claim?.phase !== 'held' || view.fence !== claim.grant || claim.isShared) return view
      return { ...view, fence: claim.fence, ageMs: Math.min(view.ageMs, this.env.now() - claim.heldAt) }
    })
    return { ...line, claims }
  }

  /** A hold that was lost is no such claim: as long as the store has it, nobody else gets the lock. */
  #isGivenUp({ id, fence }: ClaimView): boolean {
    if (clientOf(id) !== this.#clientId || this.stands(id)) return false
    return fence === null || this.#withdrawing.has(id)
  }

  /** The fence by which the store knows that hold. */
  #grantOf(resource: string, fence: number): number {
    for (const claim of this.#claims.values())
      if (claim.resource === resource && claim.phase === 'held' && claim.hasFence(fence)) return claim.grant
    return fence
  }

  /**
   * Turns waiters away, lets holds be given back for `drainMs`, takes the others away, ends the connection. After the drain it is
   * bounded by the store's time-out. Called again, the shorter drain counts.
   */
  close(drainMs: number): Promise<void> {
    // Before anybody is told of the close: a listener may call close() again, with a shorter drain.
    this.#drain ??= new Drain({ env: this.env, claims: () => this.#claims.values() })
    this.#drain.exclude(Array.from(heldFrames(this), ({ entry }) => entry))
    if (this.#closing) {
      this.#drain.endWithin(drainMs)
      return this.#closing
    }
    const closing = deferred<void>()
    // Before anybody is told: who hears of its loss may ask for another hold in the same moment, and would get what is withdrawn.
    this.#closing = closing.promise
    this.#close(this.#drain, drainMs).then(closing.resolve, closing.reject)
    return closing.promise
  }

  throwIfClosed(): void {
    if (this.#closing) throw closed(this.storeName)
  }

  async #close(drain: Drain, drainMs: number): Promise<void> {
    const reason = closed(this.storeName)
    // Waiters first, or what is given back would go to them; and waiters behind a neighbour before that neighbour is gone.
    this.#cohorts.failAll(reason)
    for (const claim of this.#claims.values()) if (claim.isPending) claim.listener.fail(reason)
    this.states.endWaits(reason)
    for (const claim of this.#claims.values()) if (claim.spec.endsAtClose) this.#takeAway(claim)
    drain.endWithin(drainMs)
    if (!drain.isOver) await drain.over
    await this.#end(reason)
  }

  async #end(reason: HoldfastError): Promise<void> {
    const deadline = this.env.now() + this.calls.storeTimeoutMs
    this.states.close(reason)
    for (const claim of this.#claims.values()) this.#takeAway(claim)
    this.#claims.clear()
    this.pulse.stop()
    if (this.#leaving > 0)
      await new Promise<void>((resolve) => {
        this.#allHaveLeft = resolve
      })
    const leftMs = Math.max(LEAST_CLOSE_MS, deadline - this.env.now())
    await this.calls.within(leftMs, () => this.connection.close())
  }

  #takeAway(claim: Claim): void {
    claim.lose('its client was closed', closed(this.storeName))
    void this.withdraw(claim.resource, claim.id)
  }

  /** Its validity has run out. Where a session decides about that, and lives on after all, the store would keep the hold for nobody. */
  #expire(claim: Claim): void {
    if (claim.phase !== 'held') return
    claim.expire(this.env.now())
    if (!this.capabilities.perHoldLease) void this.withdraw(claim.resource, claim.id)
    this.#askForNext(claim.resource)
  }

  /** A waiter of this client may have become the next one since it last asked, and would sleep until its pulse. Once for all that end together. */
  #askForNext(resource: string): void {
    if (this.#lapsed.size === 0)
      queueMicrotask(() => {
        const lapsed = new Set(this.#lapsed)
        this.#lapsed.clear()
        if (!this.#closing) this.pulse.hurryNext(lapsed)
      })
    this.#lapsed.add(resource)
  }

  #onPush(news: Push): void {
    if (news.type === 'state') return this.states.changed(news.key)
    if (news.type === 'gap') {
      this.states.changedAny()
      return this.pulse.hurryAll()
    }
    const claim = this.#claims.get(news.id)
    if (news.type === 'wanted') return claim?.baton?.wanted(this.env.now())
    if (news.type === 'granted') this.#onGranted(claim, news)
    else if (claim?.phase === 'held') claim.lose('it was broken or taken over')
    else if (claim?.phase === 'waiting') claim.listener.onGone()
    // It overtook the reply that grants the hold: ask again as soon as that has arrived.
    else if (claim?.phase === 'asking') claim.isHurried = true
  }

  #onGranted(claim: Claim | undefined, news: GrantedPush): void {
    // Granted to a caller who has given up, or by a message that travelled for too long: give it back.
    if (!claim) return void this.withdraw(news.resource, news.id)
    if (!claim.canBeGranted(news.fence)) return
    // Also where its pulse has found the grant before: who comes next is told by this alone.
    const isNew = claim.isPending || (claim.grant === news.fence && claim.phase === 'held')
    if (isNew && news.heirs?.length && claim.spec.isFollowed)
      claim.followedBy(news.heirs, news.fence, this.env.now())
    if (!claim.isPending) return
    claim.phase = 'waiting'
    if (claim.hasOldPlace) claim.takeOldGrant(news.fence, this.env.now())
    const validUntil = claim.handedOffUntil()
    const isToConfirm = this.capabilities.confirmHandOffs || claim.needsFences
    claim.hasHeard = true
    if (isToConfirm || validUntil <= this.env.now()) return this.pulse.hurry(claim)
    claim.hold(news.fence, validUntil, this.env.now())
    if (claim.isAboutToEnd(this.env.now())) this.pulse.hurry(claim)
    else this.pulse.plan(claim)
  }
}

/** The client that made a claim, by the claim's id. */
export function clientOf(id: string): string {
  const end = id.lastIndexOf(':')
  return end < 0 ? id : id.slice(0, end)
}

function closed(store: string): HoldfastError {
  return new HoldfastError('CLOSED', 'This Holdfast client is closed; make a new one to go on', { store })
}

export function notHeld(resource: string): HoldfastError {
  return new HoldfastError('NOT_HELD', `This hold of '${resource}' has been released already`, { resource })
}
