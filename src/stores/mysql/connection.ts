import { detached, systemEnv } from '../../base/env.js'
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
  Held,
  InspectQuery,
  LineView,
  StateChange,
  StateOutcome,
  StateValue,
  Waiting,
} from '../../contract/store.js'
import { groupBeats } from './beats.js'
import { checkServer } from './check.js'
import type { ClaimNews, LocalClient } from './clients.js'
import { closed } from './failures.js'
import { Lookout, type PlacedWaiting } from './lookout.js'
import { type AloneBeat, grantAlone, releaseAlone, renewAlone, whichAreAlone } from './sql/alone.js'
import { MODE } from './sql/claim.js'
import type { Answer, ShortWay, Value } from './turns.js'
import type { MysqlUser } from './user.js'
import { bytes, fromHex, json, keyOf, micros, number, toBytes, toHex, toUs } from './values.js'
import { claimView, linesOf, type SeenLine } from './views.js'

/** How long a pulse waits for the one before it. */
const PULSE_PATIENCE_MS = 1000
/** So many lines are read at once. */
const PAGE = 100

/** A reply as the routines give it. */
type Placed<T> = T | PlacedWaiting

export class MysqlConnection implements Connection, LocalClient {
  readonly #user: MysqlUser
  readonly #context: ClientContext
  readonly #lookout: Lookout
  /** A client with thousands of claims still asks one question at a time. */
  #lastPulse: Promise<unknown> = Promise.resolve()
  #closing: Promise<void> | undefined

  constructor(user: MysqlUser, context: ClientContext) {
    this.#user = user
    this.#context = context
    this.#lookout = new Lookout({
      env: user.env,
      runner: user.runner,
      client: context.id,
      push: (news) => context.push(news),
    })
    user.join(this)
  }

  get id(): string {
    return this.#context.id
  }

  get space(): string {
    return this.#context.space
  }

  onNews(news: ClaimNews): void {
    const line = keyOf(this.space, news.resource)
    // A claim that joined and was promoted in the same turn has not read yet that it waits.
    if (news.type === 'lost' || this.#lookout.knows(line, news.id)) this.#tell(line, news)
    else detached(() => setImmediate(() => this.#tell(line, news)))
  }

  /** The lookout may have seen the same a moment ago. */
  #tell(line: string, news: ClaimNews): void {
    const { id } = news
    const isNew =
      news.type === 'granted' ? this.#lookout.promote(line, id, news.fence) : this.#lookout.forget(line, id)
    if (isNew && !this.#closing) this.#context.push(news)
  }

  onState(key: string): void {
    if (this.#lookout.unwatch(keyOf(this.space, key))) this.#context.push({ type: 'state', key })
  }

  async claim(request: ClaimRequest): Promise<ClaimReply> {
    this.#user.keepSwept()
    const { resource, id } = request
    const line = keyOf(this.space, resource)
    const values = claimValues(request, this.id)
    const shortWay = this.#lookout.isIn(line) ? undefined : this.#shortClaim(line, request)
    const reply = await this.#submit<Placed<ClaimReply>>(line, resource, values, shortWay)
    this.#note(resource, line, id, reply, request.permits === EXCLUSIVE)
    return withoutPlace(reply)
  }

  pulse(beats: readonly Beat[]): Promise<BeatReply[]> {
    const turn = this.#lastPulse.then(() => this.#pulse(beats))
    // One that is never answered must not keep those behind it.
    const patience = new Promise<void>((resolve) => {
      systemEnv.timer(PULSE_PATIENCE_MS, resolve, { keepAlive: false })
    })
    this.#lastPulse = Promise.race([turn.catch(() => {}), patience])
    return turn
  }

  async release(resource: string, id: string): Promise<boolean> {
    const line = keyOf(this.space, resource)
    // Whoever had to wait is not alone.
    const shortWay = this.#lookout.wasQueued(line, id) ? undefined : this.#shortRelease(line, id)
    this.#lookout.forget(line, id)
    try {
      return await this.#submit<boolean>(line, resource, [MODE.release, toHex(id)], shortWay)
    } finally {
      this.#lookout.left(line)
    }
  }

  async evict(resource: string, fence: number | null): Promise<ClaimView[]> {
    const values = [bytes(keyOf(this.space, resource)), toBytes(this.id), number(fence)]
    return (await this.#change<ClaimView[]>('evict', resource, values)).map(claimView)
  }

  async resize(resource: string, declared: number, capacity: number): Promise<void> {
    const [line = '', ...name] = this.#name(resource)
    const values = [line, toBytes(this.id), ...name, number(declared), number(capacity)]
    await this.#change<null>('resize', resource, values)
  }

  async read(key: string, watch: boolean): Promise<StateValue | null> {
    const state = keyOf(this.space, key)
    const [found = [0, 0, '']] = await this.#call('read', [bytes(state)])
    const [last, version, value] = found as [number, number, string]
    if (watch) this.#lookout.watch(state, key, last)
    return stateValue(version, value)
  }

  async write({ key, expect, value, retentionMs }: StateChange): Promise<StateOutcome> {
    const change = [number(expect), value === null ? 'NULL' : toBytes(value), micros(retentionMs)]
    const [answer] = await this.#call('write', [...this.#name(key), ...change])
    const [written, hasChanged, version, current] = answer as [boolean, boolean, number, string]
    if (hasChanged) this.#user.clients.tellState(this.space, key)
    return { written, current: stateValue(version, current) }
  }

  unwatch(key: string): void {
    this.#lookout.unwatch(keyOf(this.space, key))
  }

  async *inspect({ prefix, resource }: InspectQuery): AsyncIterable<LineView> {
    if (resource !== undefined) {
      const found = await this.#view(bytes(keyOf(this.space, resource)), prefix, '')
      // A capacity that is pinned is told also where nobody is.
      const isMeant = resource.startsWith(prefix)
      for (const line of found) if (isMeant && (line.isPinned || line.claims.length > 0)) yield lineView(line)
      return
    }
    for (let page: SeenLine[] = [], after = ''; ; after = page.at(-1)?.resource ?? '') {
      page = await this.#view('NULL', prefix, after)
      for (const line of page) if (line.claims.length > 0) yield lineView(line)
      if (page.length < PAGE) return
    }
  }

  async spaces(): Promise<string[]> {
    this.#checkOpen()
    const { runner } = this.#user
    const found = await runner.query(`SELECT DISTINCT HEX(space) FROM ${runner.names.line}`)
    return found.map(fromHex)
  }

  async check(): Promise<Finding[]> {
    this.#checkOpen()
    return checkServer(this.#user.runner, this.#user.env)
  }

  close(): Promise<void> {
    this.#lookout.close()
    this.#closing ??= this.#user.leave(this)
    return this.#closing
  }

  async #pulse(beats: readonly Beat[]): Promise<BeatReply[]> {
    if (beats.length === 0) {
      await this.#call('read', [bytes(keyOf(this.space, ''))])
      return []
    }
    const renewed = await this.#renewAlone(beats)
    const others = await this.#pulseLines(beats.filter((beat) => !renewed.has(beat)))
    return beats.map((beat) => renewed.get(beat) ?? (others.shift() as BeatReply))
  }

  /** Most holds are alone in their lines: they are renewed together, by one UPDATE for each lease that they ask for. */
  async #renewAlone(beats: readonly Beat[]): Promise<Map<Beat, BeatReply>> {
    const { runner, at } = this.#user
    const renewed = new Map<Beat, BeatReply>()
    for (const [leaseMs, known] of this.#mayBeAlone(beats)) {
      const holds = [...known.values()]
      const { rows } = await runner.change(renewAlone(runner.names, holds, toUs(leaseMs), at))
      const left = rows === holds.length ? null : await this.#leftOf(holds)
      for (const [beat, { line, fence }] of known) {
        const leftMs = left ? left.get(line) : leaseMs
        if (leftMs === undefined) continue
        const reply: Held = { status: 'held', fence, leaseMs: leftMs }
        // What was released while the pulse was under way concerns nobody any more.
        if (this.#lookout.knows(line, beat.id)) this.#note(beat.resource, line, beat.id, reply)
        renewed.set(beat, reply)
      }
    }
    return renewed
  }

  /** By line: what is left of the leases of those that are alone. */
  async #leftOf(holds: readonly AloneBeat[]): Promise<Map<string, number>> {
    const { runner, at } = this.#user
    const rows = await runner.query(whichAreAlone(runner.names, holds, at))
    return new Map(
      rows.map((row) => JSON.parse(row) as [string, number]).map(([line, us]) => [line, us / 1000]),
    )
  }

  /** By the lease that they ask for: the holds that are renewed as they are, and may be alone in their lines. */
  #mayBeAlone(beats: readonly Beat[]): Map<number, Map<Beat, AloneBeat>> {
    const found = new Map<number, Map<Beat, AloneBeat>>()
    const lines = new Set<string>()
    for (const beat of beats) {
      const { resource, id, leaseMs, permits, block } = beat
      const line = keyOf(this.space, resource)
      const fence = this.#lookout.fenceOf(line, id)
      if (fence === undefined || permits !== undefined || block !== undefined || lines.has(line)) continue
      lines.add(line)
      const alike = found.get(leaseMs) ?? new Map<Beat, AloneBeat>()
      found.set(leaseMs, alike)
      alike.set(beat, { line, id: toHex(id), fence })
    }
    return found
  }

  async #pulseLines(beats: readonly Beat[]): Promise<BeatReply[]> {
    if (beats.length === 0) return []
    const groups = groupBeats(this.space, beats)
    const [answer] = await this.#call('pulse', [toBytes(this.id), bytes(groups.lines), json(groups.json)])
    const { reply, news } = answer as Answer<Placed<BeatReply>[]>
    this.#user.clients.tell(this.space, news, groups.resourceOf)
    return beats.map(({ resource, id, permits }, index) => {
      const line = groups.lineOf[index] ?? ''
      if (permits !== undefined) this.#lookout.share(line, id)
      const placed = reply[groups.order[index] ?? 0] as Placed<BeatReply>
      // What was released while the pulse was under way concerns nobody any more.
      if (this.#lookout.knows(line, id)) this.#note(resource, line, id, placed)
      return withoutPlace(placed)
    })
  }

  /** From now on the lookout knows what to look for. */
  #note(
    resource: string,
    line: string,
    id: string,
    reply: Placed<ClaimReply | BeatReply>,
    isExclusive = false,
  ): void {
    if (isPlaced(reply)) this.#lookout.wait(resource, line, id, reply, isExclusive)
    else if (reply.status === 'granted' || reply.status === 'held')
      this.#lookout.hold(resource, line, id, reply, isExclusive)
    else this.#lookout.forget(line, id)
  }

  async #view(line: string, prefix: string, after: string): Promise<SeenLine[]> {
    const values = [line, toBytes(this.space), toBytes(prefix), toBytes(after), number(PAGE)]
    return linesOf(await this.#call('view', values))
  }

  /** The key of a line or state, and the name that it stands for. */
  #name(name: string): string[] {
    return [bytes(keyOf(this.space, name)), toBytes(this.space), toBytes(name)]
  }

  /** Claims and releases keep their order. */
  #submit<T>(
    line: string,
    resource: string,
    values: readonly Value[],
    shortWay: ShortWay | undefined,
  ): Promise<T> {
    this.#checkOpen()
    return this.#user.turns.submit({ line, space: this.space, resource }, this.id, values, shortWay)
  }

  /** Only for claims that ask for no cap, and for nobody's place. */
  #shortClaim(line: string, request: ClaimRequest): ShortWay | undefined {
    const { permits, capacity, leaseMs, maxHoldMs, floor, block, mode } = request
    if (maxHoldMs !== null || mode === 'adopt' || mode === 'steal' || permits > capacity) return undefined
    const [id, client, info] = [toHex(request.id), toHex(this.id), toHex(request.info)]
    const claim = { id, client, info, permits, capacity, lease: toUs(leaseMs), floor, block }
    return {
      sql: (at) => grantAlone(this.#user.runner.names, line, claim, at),
      reply: (changed) => ({ status: 'granted', fence: changed.id, leaseMs: claim.lease / 1000 }),
    }
  }

  #shortRelease(line: string, id: string): ShortWay {
    return { sql: (at) => releaseAlone(this.#user.runner.names, line, toHex(id), at), reply: () => true }
  }

  /** Calls a routine that may promote or rob others in a line; those of this process are told at once. */
  async #change<T>(routine: string, resource: string, values: readonly string[]): Promise<T> {
    const [answer] = await this.#call(routine, values)
    const { reply, news } = answer as Answer<T>
    this.#user.clients.tell(this.space, news, () => resource)
    return reply
  }

  async #call(routine: string, values: readonly string[]): Promise<unknown[]> {
    this.#checkOpen()
    const rows = await this.#user.runner.call(routine, [...values, this.#user.at])
    return rows.map((row) => JSON.parse(row))
  }

  #checkOpen(): void {
    if (this.#closing) throw closed()
  }
}

/** In the order of `CLAIM_VALUES`. */
function claimValues(request: ClaimRequest, client: string): Value[] {
  const { id, permits, capacity, maxHoldMs, floor, block, info, adopts } = request
  const durations = [
    toUs(request.leaseMs),
    toUs(request.presenceMs),
    maxHoldMs === null ? null : toUs(maxHoldMs),
  ]
  const old = adopts ? [toHex(adopts.id), adopts.fence] : [null, null]
  const who = [MODE[request.mode], toHex(id), toHex(client)]
  return [...who, permits, capacity, ...durations, floor, block, toHex(info), ...old]
}

function isPlaced(reply: object): reply is PlacedWaiting {
  return 'place' in reply
}

/** What the contract tells of a reply. */
function withoutPlace<T extends ClaimReply | BeatReply>(reply: Placed<T>): T | Waiting {
  if (!isPlaced(reply)) return reply
  const { place: _place, nextPlace: _nextPlace, ...waiting } = reply
  return waiting
}

function stateValue(version: number, value: string): StateValue | null {
  return version === 0 ? null : { version, value: fromHex(value) }
}

function lineView({ resource, capacity, claims }: SeenLine): LineView {
  return { resource, capacity, claims }
}
