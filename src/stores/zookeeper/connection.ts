import type { Cancel } from '../../base/env.js'
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
} from '../../contract/store.js'
import { ZooKeeperError } from '../../drivers/zookeeper/index.js'
import { checkAccess, checkServers, tryLock } from './check.js'
import { closed, storeFailure } from './failures.js'
import { notShared } from './format.js'
import type { Line } from './line.js'
import { Operator } from './operator.js'
import type { Places } from './places.js'
import type { SessionUser } from './session.js'
import { States } from './states.js'
import { Stay } from './stay.js'
import { adopt, overtake, steal } from './takeover.js'

/** One client's connection. */
export class ZooKeeperConnection implements Connection, SessionUser {
  readonly #places: Places
  readonly #operator: Operator
  readonly #states: States
  /** By resource and id. */
  readonly #stays = new Map<string, Stay>()
  /** Nobody wants them any more, but their nodes may still be there. */
  readonly #debris = new Set<Stay>()
  #cancelLapse: Cancel = () => {}
  #lapseAt = Infinity
  #closing: Promise<void> | null = null
  /** Closed, but for what could not be removed yet. */
  #isLeaving = false

  constructor(places: Places) {
    this.#places = places
    this.#operator = new Operator(places, (resource, id) => this.#leftMs(resource, id))
    this.#states = new States(places)
    places.session.join(this)
  }

  claim(request: ClaimRequest): Promise<ClaimReply> {
    return this.#call(async () => {
      this.#refuseIfShared(request.mode === 'steal', 'a steal')
      this.#refuseIfShared(request.mode === 'adopt', 'an adoption')
      const callAt = this.#places.env.now()
      const key = keyOf(request)
      const known = this.#stays.get(key)
      const stay = known?.isAlive(callAt) ? known : new Stay(this.#places, request, callAt)
      if (known && known !== stay) this.#discard(known)
      this.#stays.set(key, stay)
      this.#lapseBy(stay.term.expiresAt)
      const reply = await stay.turn(() => this.#reply(stay, request, callAt))
      const isPresent = this.#stays.get(key) === stay
      if (reply.status === 'refused') {
        if (isPresent) this.#stays.delete(key)
        return reply
      }
      // It has lapsed meanwhile and is being removed: what it was told is not true any more.
      if (!isPresent) throw lapsed(request.resource)
      this.#lapseBy(stay.term.expiresAt)
      return reply
    })
  }

  pulse(beats: readonly Beat[]): Promise<BeatReply[]> {
    return this.#call(async () => {
      this.#refuseIfShared(
        beats.some(({ block }) => block !== undefined),
        'blocks of fences',
      )
      const callAt = this.#places.env.now()
      this.#dropLapsed()
      // All at once: the lists come after the write, in one round trip.
      const refreshing = [this.#places.session.confirm(), ...this.#refreshing(beats, callAt)]
      await Promise.all(refreshing)
      this.#clean()
      return Promise.all(beats.map((beat) => this.#beat(beat, callAt)))
    })
  }

  release(resource: string, id: string): Promise<boolean> {
    return this.#call(() => {
      const key = keyOf({ resource, id })
      const stay = this.#stays.get(key)
      if (!stay) return Promise.resolve(false)
      const wasAlive = stay.isAlive(this.#places.env.now())
      return stay.turn(async () => {
        const hasLeft = await this.#leave(stay)
        if (this.#stays.get(key) === stay) this.#stays.delete(key)
        return hasLeft && wasAlive
      })
    })
  }

  evict(resource: string, fence: number | null): Promise<ClaimView[]> {
    return this.#call(async () => {
      this.#refuseIfShared(true, 'its holds broken')
      return this.#operator.evict(resource, fence)
    })
  }

  resize(resource: string, declared: number, capacity: number): Promise<void> {
    return this.#call(async () => {
      this.#refuseIfShared(true, 'its capacity changed')
      return this.#operator.resize(resource, declared, capacity)
    })
  }

  read(key: string, watch: boolean): Promise<StateValue | null> {
    return this.#call(() => this.#states.read(key, watch))
  }

  write(change: StateChange): Promise<StateOutcome> {
    return this.#call(() => this.#states.write(change))
  }

  spaces(): Promise<string[]> {
    return this.#call(async () => {
      await this.#places.session.zk.sync()
      return this.#operator.spaces()
    })
  }

  async *inspect(query: InspectQuery): AsyncIterable<LineView> {
    const lines = this.#operator.inspect(query)[Symbol.asyncIterator]()
    for (;;) {
      const line = await this.#call(async () => {
        // A server may lag behind what this client knows from elsewhere.
        await this.#places.session.zk.sync()
        return lines.next()
      })
      if (line.done) return
      yield line.value
    }
  }

  trouble(): string | null {
    return this.#places.session.trouble
  }

  check(): Promise<Finding[]> {
    return this.#call(async () => {
      const { session, env, format } = this.#places
      const findings = await checkServers(session, env)
      const resource = `holdfast-doctor-${env.id()}`
      const failure = await tryLock(this, resource, format.isOwn)
      return [...findings, ...(await checkAccess(this.#places, resource, failure))]
    })
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  onSessionEnd(): void {
    this.#debris.clear()
    for (const stay of this.#stays.values()) stay.lose()
    this.#stays.clear()
    // States are not of the session, but the watches on them were.
    this.#states.forgetWatches()
    this.#places.push({ type: 'gap' })
  }

  onSessionBack(): void {
    this.#clean()
    for (const stay of this.#stays.values()) if (stay.state !== 'unknown') void stay.refresh().catch(() => {})
  }

  async #reply(stay: Stay, request: ClaimRequest, callAt: number): Promise<ClaimReply> {
    if (stay.isUncertain) await stay.recover()
    if (stay.state === 'unknown') {
      const refusal = await this.#enter(stay, request)
      if (refusal) return refusal
    } else await stay.settle()
    if (request.mode === 'steal') await overtake(this.#places, stay, request)
    if (stay.state === 'waiting' && request.mode === 'try') return this.#refuse(stay, { reason: 'busy' })
    if (stay.state !== 'gone') return stay.claimReply(callAt)
    // The session ended meanwhile. If the claim has got a node in the next one, nobody knows of it.
    this.#discard(stay)
    throw new ZooKeeperError('SESSION_EXPIRED', `The session ended while '${request.resource}' was asked for`)
  }

  /** Puts a claim into its line; the refusal, if it is refused. */
  async #enter(stay: Stay, request: ClaimRequest): Promise<ClaimReply | null> {
    // What looks at the line first has to see those who came before it.
    if (request.mode !== 'queue') await this.#places.entrances.pass(this.#places.lineOf(request.resource))
    if (request.mode === 'adopt' || request.mode === 'steal') {
      const taken = await this.#takeOver(stay, request)
      if (typeof taken !== 'boolean') return taken
      if (taken) {
        await stay.settle()
        return null
      }
    }
    if (request.mode === 'try') {
      // Look first: a try that fails leaves no trace, not even for a moment.
      const refusal = refusalIn(await this.#places.list(request.resource), request)
      if (refusal) return { status: 'refused', ...refusal }
    }
    const line = await stay.enter()
    if (!line) return null
    this.#tidy(request.resource, line)
    if (!line.agrees(request)) {
      const { capacity = 0 } = line
      return this.#refuse(stay, { reason: 'capacity', capacity })
    }
    await stay.settle(line)
    return null
  }

  /** false: there is nothing to take over, so it joins the line like any other. */
  #takeOver(stay: Stay, request: ClaimRequest): Promise<ClaimReply | boolean> {
    if (request.adopts) return adopt(this.#places, stay, request, request.adopts)
    return steal(this.#places, stay, request)
  }

  /** Whoever comes by tidies. */
  #tidy(resource: string, { isMarkStale, mark }: Line): void {
    const path = `${this.#places.lineOf(resource)}/${mark?.name}`
    if (isMarkStale) this.#places.session.zk.delete(path).catch(() => {})
  }

  async #refuse(stay: Stay, why: Refusal): Promise<ClaimReply> {
    await stay.leave().catch(() => this.#discard(stay))
    return { status: 'refused', ...why }
  }

  #refuseIfShared(isWanted: boolean, what: string): void {
    if (isWanted && !this.#places.format.isOwn) throw notShared(what)
  }

  #refreshing(beats: readonly Beat[], now: number): Promise<void>[] {
    // Where permits are given back, others may come in before the answer.
    const isShrinking = beats.some(({ permits }) => permits !== undefined)
    return beats.flatMap((beat) => {
      const stay = this.#alive(beat, now)
      if (!stay) return []
      return isShrinking ? [stay.refresh()] : [stay.refresh(), stay.lookBehind(beat.block)]
    })
  }

  #alive(beat: Beat, now: number): Stay | undefined {
    const stay = this.#stays.get(keyOf(beat))
    return stay?.isAlive(now) && stay.state !== 'unknown' ? stay : undefined
  }

  async #beat(beat: Beat, callAt: number): Promise<BeatReply> {
    const stay = this.#alive(beat, callAt)
    if (!stay) return { status: 'gone' }
    stay.keep(callAt, beat.leaseMs, beat.presenceMs)
    this.#lapseBy(stay.term.expiresAt)
    if (stay.state !== 'held') return stay.beatReply(callAt)
    // On a shared line a writer that has become a reader goes on to keep everybody out, which is safe.
    const { permits, block: wanted } = beat
    // One after the other: of two pulses at once, the second would not find the node that the first has replaced.
    if (permits !== undefined && this.#places.format.isOwn) await stay.turn(() => stay.shrink(permits))
    const block = wanted === undefined ? undefined : await stay.turn(() => stay.reserve(wanted))
    if (!stay.isAlive(callAt)) return { status: 'gone' }
    const reply = stay.beatReply(callAt)
    return typeof block === 'number' && reply.status === 'held' ? { ...reply, block } : reply
  }

  #leftMs(resource: string, id: string): number | undefined {
    const stay = this.#stays.get(keyOf({ resource, id }))
    return stay && stay.term.expiresAt - this.#places.env.now()
  }

  #lapseBy(at: number): void {
    if (at >= this.#lapseAt) return
    this.#cancelLapse()
    this.#lapseAt = at
    const { env } = this.#places
    this.#cancelLapse = env.timer(at - env.now(), () => this.#dropLapsed(), { keepAlive: false })
  }

  /** A claim of which nobody speaks any more must not stand in line for as long as the session lives. */
  #dropLapsed(): void {
    const now = this.#places.env.now()
    this.#cancelLapse()
    this.#lapseAt = Infinity
    let next = Infinity
    for (const [key, stay] of this.#stays) {
      if (stay.term.expiresAt > now) next = Math.min(next, stay.term.expiresAt)
      else {
        this.#stays.delete(key)
        this.#discard(stay)
      }
    }
    this.#lapseBy(next)
  }

  #leave(stay: Stay): Promise<boolean> {
    return stay.leave().catch((error) => {
      // It may not be asked for again, and must not stand in line for as long as its lease was to be.
      this.#debris.add(stay)
      throw error
    })
  }

  #discard(stay: Stay): void {
    stay.giveUp()
    this.#debris.add(stay)
    this.#clean()
  }

  #clean(): void {
    for (const stay of this.#debris) {
      const leaving = stay.turn(() => stay.leave())
      leaving.then(
        () => this.#cleaned(stay),
        () => {},
      )
    }
  }

  #cleaned(stay: Stay): void {
    this.#debris.delete(stay)
    if (this.#isLeaving && this.#debris.size === 0) void this.#places.session.leave(this)
  }

  async #close(): Promise<void> {
    const { session } = this.#places
    this.#cancelLapse()
    // The session may live on with others: nothing of this client shall.
    if (!session.isOnly) {
      const leaving = [...this.#stays.values()].map((stay) =>
        stay.turn(() => stay.leave()).catch(() => this.#debris.add(stay)),
      )
      await Promise.all(leaving)
    }
    this.#stays.clear()
    this.#isLeaving = true
    if (session.isOnly || this.#debris.size === 0) await session.leave(this)
  }

  #call<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closing) return Promise.reject(closed())
    return work().catch((error) => {
      throw storeFailure(error)
    })
  }
}

function keyOf({ resource, id }: { resource: string; id: string }): string {
  return `${id.length} ${id}${resource}`
}

function lapsed(resource: string): ZooKeeperError {
  return new ZooKeeperError('REQUEST_TIMEOUT', `The answer for '${resource}' came after its claim had lapsed`)
}

interface Refusal {
  readonly reason: 'busy' | 'capacity'
  readonly capacity?: number
}

/** Why a claim that does not wait cannot be had. */
function refusalIn(line: Line, request: ClaimRequest): Refusal | null {
  const capacity = line.capacity ?? request.capacity
  if (!line.agrees(request)) return { reason: 'capacity', capacity }
  const used = line.claims.reduce((sum, { permits }) => sum + permits, 0)
  return used + request.permits > capacity ? { reason: 'busy' } : null
}
