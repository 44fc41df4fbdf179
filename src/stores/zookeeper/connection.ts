import type {
  Beat,
  BeatReply,
  ClaimReply,
  ClaimRequest,
  ClaimView,
  Connection,
  Finding,
  InspectQuery,
  LineView,
  StateChange,
  StateOutcome,
  StateValue,
  StateView,
} from '../../contract/store.js'
import { ZooKeeperError } from '../../drivers/zookeeper/index.js'
import { ClaimTable } from '../shared/claim-table.js'
import { checkAccess, checkServers, tryLock } from './check.js'
import { LineClaim } from './claim.js'
import { ClaimEntry } from './claim-entry.js'
import { closed, storeFailure } from './failures.js'
import { notShared } from './format.js'
import { LineAdmin } from './line-admin.js'
import { beatReply } from './replies.js'
import type { SessionClient } from './session.js'
import type { ZooKeeperSpace } from './space.js'
import { ZooKeeperStates } from './states.js'

/** One client's connection. */
export class ZooKeeperConnection implements Connection, SessionClient {
  readonly #space: ZooKeeperSpace
  readonly #claims: ClaimTable<LineClaim>
  readonly #entry: ClaimEntry
  readonly #admin: LineAdmin
  readonly #states: ZooKeeperStates
  #closing: Promise<void> | null = null
  /** Closed, but it still uses the session to remove what could not be removed yet. */
  #isLeaving = false

  constructor(space: ZooKeeperSpace) {
    this.#space = space
    this.#claims = new ClaimTable(
      space.env,
      (request, key, now) => new LineClaim(space, request, key, now),
      () => this.#onCleaned(),
    )
    this.#entry = new ClaimEntry(space, this.#claims)
    this.#admin = new LineAdmin(space, (resource, id) => this.#leftMs(resource, id))
    this.#states = new ZooKeeperStates(space)
    space.session.join(this)
  }

  async claim(request: ClaimRequest): Promise<ClaimReply> {
    if (this.#closing) throw closed()
    let claim: LineClaim | undefined
    try {
      if (request.mode === 'steal') this.#refuseIfShared('a steal')
      if (request.mode === 'adopt') this.#refuseIfShared('an adoption')
      const callAt = this.#space.env.now()
      claim = this.#claims.open(request, callAt)
      this.#claims.schedule(claim)
      const reply = await this.#entry.reply(claim, request, callAt)
      if (reply.status === 'refused') this.#claims.delete(claim)
      // It has expired meanwhile and is being removed: the reply is not true any more.
      else if (!this.#claims.has(claim)) throw expired(request.resource)
      else this.#claims.schedule(claim)
      return reply
    } catch (error) {
      // It ended meanwhile, so no later call finds it, but it may have a node in the next session.
      if (claim && !this.#claims.has(claim)) this.#claims.abandon(claim)
      throw storeFailure(error)
    }
  }

  pulse(beats: readonly Beat[]): Promise<BeatReply[]> {
    return this.#call(async () => {
      if (beats.some(({ block }) => block !== undefined)) this.#refuseIfShared('blocks of fences')
      const callAt = this.#space.env.now()
      this.#claims.dropExpired()
      // All at once: the lists come after the write, in one round trip.
      await Promise.all([this.#space.session.confirm(), ...this.#refreshing(beats, callAt)])
      this.#claims.clean()
      return Promise.all(beats.map((beat) => this.#beat(beat, callAt)))
    })
  }

  async release(resource: string, id: string): Promise<boolean> {
    if (this.#closing) throw closed()
    const claim = this.#claims.get(resource, id)
    if (!claim) return false
    const wasAlive = claim.isAlive(this.#space.env.now())
    const turn = claim.calls.enter()
    if (turn) await turn
    try {
      const hasLeft = await claim.leave()
      this.#claims.delete(claim)
      return hasLeft && wasAlive
    } catch (error) {
      this.#claims.addLeftover(claim)
      throw storeFailure(error)
    } finally {
      claim.calls.leave()
    }
  }

  evict(resource: string, fence: number | null): Promise<ClaimView[]> {
    return this.#call(async () => {
      this.#refuseIfShared('its holds broken')
      return this.#admin.evict(resource, fence)
    })
  }

  cancel(resource: string, id: string): Promise<ClaimView[]> {
    return this.#call(async () => {
      this.#refuseIfShared('its waiters cancelled')
      return this.#admin.cancel(resource, id)
    })
  }

  resize(resource: string, declared: number, capacity: number): Promise<void> {
    return this.#call(async () => {
      this.#refuseIfShared('its capacity changed')
      return this.#admin.resize(resource, declared, capacity)
    })
  }

  read(key: string, watch: boolean): Promise<StateValue | null> {
    return this.#call(() => this.#states.read(key, watch))
  }

  unwatch(key: string): void {
    if (!this.#closing) this.#states.unwatch(key)
  }

  async *states(prefix: string): AsyncIterable<StateView> {
    yield* await this.#call(async () => {
      await this.#space.session.zk.sync()
      return this.#states.list(prefix)
    })
  }

  write(change: StateChange): Promise<StateOutcome> {
    return this.#call(() => this.#states.write(change))
  }

  spaces(): Promise<string[]> {
    return this.#call(async () => {
      await this.#space.session.zk.sync()
      return this.#admin.spaces()
    })
  }

  async *inspect(query: InspectQuery): AsyncIterable<LineView> {
    const lines = this.#admin.inspect(query)[Symbol.asyncIterator]()
    for (;;) {
      const line = await this.#call(async () => {
        // A server may lag behind what this client knows from elsewhere.
        await this.#space.session.zk.sync()
        return lines.next()
      })
      if (line.done) return
      yield line.value
    }
  }

  trouble(): string | null {
    return this.#space.session.trouble
  }

  check(): Promise<Finding[]> {
    return this.#call(async () => {
      const { session, env, format } = this.#space
      const findings = await checkServers(session, env)
      const resource = `holdfast-doctor-${env.id()}`
      const failure = await tryLock(this, resource, format.isOwn)
      return [...findings, ...(await checkAccess(this.#space, resource, failure))]
    })
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  onSessionEnd(): void {
    this.#claims.loseAll()
    // States outlast the session, but the watches on them do not.
    this.#states.forgetWatches()
    this.#space.push({ type: 'gap' })
    // What could not be removed has ended with the session.
    this.#onCleaned()
  }

  onSessionBack(): void {
    this.#claims.clean()
    for (const claim of this.#claims) if (claim.state !== 'new') void claim.refresh().catch(() => {})
  }

  #refreshing(beats: readonly Beat[], now: number): Promise<void>[] {
    // Permits that are given back may let others in before the reply: then whether others wait is
    // not known.
    const isShrinking = beats.some(({ permits }) => permits !== undefined)
    return beats.flatMap((beat) => {
      const claim = this.#inLine(beat, now)
      if (!claim) return []
      return isShrinking ? [claim.refresh()] : [claim.refresh(), claim.lookBehind(beat.block)]
    })
  }

  async #beat(beat: Beat, callAt: number): Promise<BeatReply> {
    const claim = this.#inLine(beat, callAt)
    if (!claim) return { status: 'gone' }
    const { session, format } = this.#space
    claim.expiry.renew(callAt, beat.leaseMs, beat.presenceMs)
    this.#claims.schedule(claim)
    if (claim.state !== 'held') return beatReply(session, claim, callAt)
    const { permits, block } = beat
    // On a shared line a writer that becomes a reader keeps its node, and so excludes all others:
    // that is safe.
    const isShrinking = permits !== undefined && format.isOwn
    // One after the other: a second pulse would not find the node that the first one has replaced.
    if (isShrinking) await claim.calls.run(() => claim.shrink(permits))
    const first = block === undefined ? null : await claim.calls.run(() => claim.reserve(block))
    if (!claim.isAlive(callAt)) return { status: 'gone' }
    const reply = beatReply(session, claim, callAt)
    return first !== null && reply.status === 'held' ? { ...reply, block: first } : reply
  }

  #inLine({ resource, id }: Beat, now: number): LineClaim | undefined {
    const claim = this.#claims.get(resource, id)
    return claim?.isAlive(now) && claim.state !== 'new' ? claim : undefined
  }

  #leftMs(resource: string, id: string): number | undefined {
    const claim = this.#claims.get(resource, id)
    return claim && claim.expiry.at - this.#space.env.now()
  }

  #refuseIfShared(what: string): void {
    if (!this.#space.format.isOwn) throw notShared(what)
  }

  #onCleaned(): void {
    if (this.#isLeaving) void this.#space.session.leave(this)
  }

  async #close(): Promise<void> {
    const { session } = this.#space
    this.#claims.cancelTimer()
    // Other clients may keep the session alive: no claim of this client may remain in it.
    if (!session.hasOneClient) await this.#claims.leaveAll()
    this.#claims.clear()
    this.#isLeaving = true
    if (session.hasOneClient) this.#claims.stopCleaning()
    if (!this.#claims.hasLeftovers) await session.leave(this)
  }

  async #call<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closing) throw closed()
    try {
      return await work()
    } catch (error) {
      throw storeFailure(error)
    }
  }
}

function expired(resource: string): ZooKeeperError {
  return new ZooKeeperError(
    'REQUEST_TIMEOUT',
    `The answer for '${resource}' came after its claim had expired`,
  )
}
