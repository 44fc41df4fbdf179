import { EXCLUSIVE } from '../../contract/admit.js'
import type { ClaimReply, ClaimRequest, Held, Waiting } from '../../contract/store.js'
import type { MultiOperation, Stat, WatchListener, ZooKeeperClient } from '../../drivers/zookeeper/index.js'
import { hasCode, isUncertain } from './failures.js'
import type { Cue, Line } from './line.js'
import { type ClaimName, checkBlock, fenceOf, lastFenceOf, successorName } from './names.js'
import { type Places, writeData } from './places.js'

/** Asked for so often when the line's node vanishes between being made and being used. */
const MOST_ATTEMPTS = 5

/**
 * - `unknown`: not asked for yet, or what became of the asking is not known
 * - `waiting`, `held`: in line
 * - `gone`: not any more
 */
type State = 'unknown' | 'waiting' | 'held' | 'gone'

/** One claim of this client and the node that stands for it. */
export class Stay {
  state: State = 'unknown'
  readonly resource: string
  readonly id: string
  /** When it lapses, if nobody speaks of it: kept by us, as the server knows only the session. */
  expiresAt: number
  /** It may have a node, though we do not know its name. */
  isUncertain = false
  readonly #places: Places
  readonly #askedAt: number
  readonly #request: ClaimRequest
  #name: ClaimName | null = null
  #fence = 0
  #grantedAt = Number.NaN
  #isNext = false
  #grantsAbove = 0
  #hasWaited = false
  #owesMark = false
  #isOwnWatched = false
  #cue: { readonly path: string; readonly stop: () => void } | null = null
  /** Claims of the same client that wait for the end of this one. */
  readonly #followers = new Set<Stay>()
  /** The last of its fences. */
  #topFence = 0
  /** The node that we are about to put another one in the place of. */
  #leaving: string | null = null
  #seenMark = ''
  #isStale = false
  #settling: Promise<void> | null = null
  #turn: Promise<unknown> = Promise.resolve()

  constructor(places: Places, request: ClaimRequest, now: number) {
    this.#places = places
    this.#request = request
    checkBlock(request.block)
    this.resource = request.resource
    this.id = request.id
    this.#askedAt = now
    this.expiresAt = now + request.presenceMs
  }

  /** In line, for all we know. */
  isAlive(now: number): boolean {
    return this.state !== 'gone' && this.expiresAt > now
  }

  /** One call for a claim at a time, in the order in which they came. */
  turn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work, work)
    this.#turn = result.catch(() => {})
    return result
  }

  /** Joins the end of the line. The line as it was then. */
  async enter(): Promise<Line> {
    const { session, format } = this.#places
    const prefix = `${this.#line}/${format.prefix(this.#request)}`
    const mode = 'ephemeralSequential'
    const create = { type: 'create', path: prefix, mode, data: this.#data(), acl: session.acl } as const
    for (let attempt = 1; ; attempt++) {
      // Both at once: the server handles them in order, so the list has the node and everything before it.
      const creating = this.#certain(this.#places.batch.write(create, this.#line))
      const listing = this.#places.list(this.resource)
      listing.catch(() => {})
      try {
        const { path, zxid } = await creating
        this.#stand(path.slice(this.#line.length + 1), zxid)
        return await listing
      } catch (error) {
        if (!hasCode(error, 'NO_NODE') || attempt === MOST_ATTEMPTS) throw error
        await session.makePath(this.#line)
      }
    }
  }

  /** Takes the place of others, who leave in the same step. false: they were not there any more. */
  async replace(others: readonly ClaimName[], place: Omit<ClaimName, 'name' | 'id'>): Promise<boolean> {
    const { session } = this.#places
    const name = successorName({ ...place, id: this.id })
    const path = `${this.#line}/${name}`
    const operations: MultiOperation[] = [
      ...others.map((other) => ({ type: 'delete', path: `${this.#line}/${other.name}` }) as const),
      { type: 'create', path, mode: 'ephemeral', data: this.#data(), acl: session.acl },
    ]
    // Tells those who came before this transaction, and are granted after it, to take a later fence than their own.
    if (place.fence === null) operations.push({ type: 'set', path: this.#line, data: '' })
    try {
      const { zxid } = await this.#certain(session.write((zk) => zk.multi(operations)))
      this.#stand(name, zxid)
    } catch (error) {
      if (hasCode(error, 'NO_NODE')) return false
      throw error
    }
    return true
  }

  /** Looks for the node of a request whose answer was lost. */
  async recover(): Promise<boolean> {
    const { session, format } = this.#places
    // Whatever was on its way when the connection broke is through, or refused for good, when this is answered.
    await session.zk.sync(this.#line).catch((error) => {
      if (!hasCode(error, 'NO_NODE')) throw error
    })
    const line = await this.#places.list(this.resource)
    for (const { name } of line.claims.filter(({ id }) => id === format.idInName(this.id))) {
      const { stat } = await session.zk.exists(`${this.#line}/${name}`)
      // A node of a session of ours that is about to end would take our hold with it.
      if (stat?.ephemeralOwner !== session.id) continue
      this.#stand(name, stat?.czxid ?? 0n)
      return true
    }
    this.isUncertain = false
    this.#forget()
    return false
  }

  /** Finds out where it stands, in this line if one is given. Also what others ask for meanwhile is answered by it. */
  settle(line?: Line): Promise<void> {
    if (this.state !== 'waiting') return Promise.resolve()
    this.#isStale = true
    this.#settling ??= this.#settle(line)
    return this.#settling
  }

  /** Everything that the server has told us by now is taken in. */
  async refresh(): Promise<void> {
    if (this.#settling) await this.#settling
    await this.#ascertain()
    if (!this.#isOwnWatched) await this.#watchOwn()
    if (this.#owesMark) await this.#mark()
    // In a counting line a claim may be next without knowing: after a resize, nobody may be there to tell it.
    if (this.state === 'waiting') await this.settle()
  }

  /** Leaves the line. false: it was not there any more. */
  async leave(): Promise<boolean> {
    for (;;) {
      if (this.isUncertain) await this.recover()
      const name = this.#name
      if (!name) return false
      const isHead = this.state === 'held' && name.permits === EXCLUSIVE
      const hasLeft = await this.#remove(name)
      // It may have taken another node meanwhile, in the place of this one.
      if (!hasLeft && (this.isUncertain || this.#name !== name)) continue
      this.#forget(isHead && hasLeft)
      return hasLeft
    }
  }

  /** Gives permits back, in its place. */
  async shrink(permits: number): Promise<void> {
    const name = this.#name
    if (name && permits < name.permits) await this.#renew(name, { ...name, permits, fence: this.#fence })
  }

  /** Reserves further fences, above all that were given so far; the first of them. null: it is not there any more. */
  async reserve(block: number): Promise<number | null> {
    checkBlock(block)
    const own = `${this.#line}/${this.#name?.name}`
    try {
      const { zxid } = await this.#places.session.write((zk) =>
        zk.multi([
          { type: 'check', path: own },
          { type: 'set', path: this.#line, data: '' },
        ]),
      )
      this.#topFence = lastFenceOf(zxid)
      return fenceOf(zxid)
    } catch (error) {
      if (!hasCode(error, 'NO_NODE')) throw error
      this.lose()
      return null
    }
  }

  /** Speaks of it: it lives on for so long. */
  keep(now: number, leaseMs: number, presenceMs: number): void {
    const wanted = this.state === 'held' ? Math.min(now + leaseMs, this.#capAt) : now + presenceMs
    this.expiresAt = Math.max(this.expiresAt, wanted)
  }

  claimReply(callAt: number): ClaimReply {
    if (this.state === 'held') return { status: 'granted', fence: this.#fence, leaseMs: this.#leftMs(callAt) }
    this.#hasWaited = true
    return this.#waiting(callAt)
  }

  beatReply(callAt: number): Held | Waiting {
    if (this.state !== 'held') return this.#waiting(callAt)
    return { status: 'held', fence: this.#fence, leaseMs: this.#leftMs(callAt) }
  }

  /** It is over; tells the client. */
  lose(): void {
    if (this.state === 'gone') return
    this.state = 'gone'
    this.#forget()
    this.#places.push({ type: 'lost', resource: this.resource, id: this.id })
  }

  get #line(): string {
    return this.#places.lineOf(this.resource)
  }

  get #capAt(): number {
    return this.#grantedAt + (this.#request.maxHoldMs ?? Infinity)
  }

  /** The lease ends with what we keep, and with what the leader surely gives the session. */
  #leftMs(callAt: number): number {
    return Math.min(this.expiresAt, this.#places.session.validUntil) - callAt
  }

  #waiting(callAt: number): Waiting {
    const presenceMs = this.#leftMs(callAt)
    return {
      status: 'waiting',
      presenceMs,
      isNext: this.#isNext,
      freeInMs: null,
      grantsAbove: this.#grantsAbove,
    }
  }

  #data(): string {
    const { info } = this.#request
    return writeData({ info, timeoutMs: this.#places.session.timeoutMs })
  }

  /** false: there is no such node. */
  async #remove({ name }: ClaimName): Promise<boolean> {
    // Ours to take away: its end is no news.
    const before = this.state
    this.state = 'gone'
    try {
      await this.#places.batch.write({ type: 'delete', path: `${this.#line}/${name}` }, this.#line)
      return true
    } catch (error) {
      if (hasCode(error, 'NO_NODE')) return false
      this.state = before
      throw error
    }
  }

  async #certain<T>(writing: Promise<T>): Promise<T> {
    try {
      return await writing
    } catch (error) {
      if (isUncertain(error)) this.isUncertain = true
      throw error
    }
  }

  #stand(name: string, zxid: bigint): void {
    if (this.#name) this.#vacate(this.#name, false)
    this.#name = this.#places.format.parse(name)
    this.#fence = this.#name?.fence ?? fenceOf(zxid)
    this.#topFence = lastFenceOf(zxid)
    this.isUncertain = false
    this.#isOwnWatched = false
    if (this.state === 'unknown') this.state = 'waiting'
    this.#places.stands(`${this.#line}/${name}`, this)
    this.#places.ifLasting(() => {
      if (!this.#isOwnWatched) void this.#watchOwn().catch(() => {})
    })
  }

  async #settle(line?: Line): Promise<void> {
    let known = line
    try {
      while (this.#isStale && this.state === 'waiting') {
        this.#isStale = false
        await this.#ascertain()
        if (this.state !== 'waiting') return
        await this.#look(known ?? (await this.#places.list(this.resource)))
        known = undefined
      }
    } finally {
      this.#settling = null
    }
  }

  /** Where a node was to take our old one's place, and the answer was lost: which of the two is it? */
  async #ascertain(): Promise<void> {
    if (this.isUncertain && !(await this.recover())) this.lose()
  }

  async #look(line: Line): Promise<void> {
    const mine = this.#name && line.find(this.#name.name)
    if (!mine) return this.lose()
    const standing = line.standing(mine)
    this.#grantsAbove = Math.max(this.#fence - 1, this.#isBehind(line) ? lastFenceOf(line.lastJump) : 0)
    if (standing.isHeld) return this.#grant(line, mine)
    this.#isNext = standing.isNext
    await this.#watch(standing.cue, mine)
  }

  #isBehind(line: Line): boolean {
    return fenceOf(line.lastJump) > this.#fence
  }

  async #grant(line: Line, mine: ClaimName): Promise<void> {
    if (this.#isBehind(line)) await this.#renew(mine, { ...mine, fence: null })
    if (this.state !== 'waiting') return
    this.#hold()
    if (line.capacity === EXCLUSIVE || line.isLast(mine)) return
    // Whoever waits behind us is next now, and watches our node: it may have seen us wait before we knew of it.
    this.#owesMark = true
    void this.#mark().catch(() => {})
  }

  #hold(): void {
    this.state = 'held'
    // Whoever need not wait counts from the asking, however long the answer took.
    this.#grantedAt = this.#hasWaited ? this.#places.env.now() : this.#askedAt
    this.#unwatch()
    // A promotion refreshes nothing: only the next word of its owner starts the lease.
    if (!this.#hasWaited) this.expiresAt = this.#askedAt + this.#request.leaseMs
    this.expiresAt = Math.min(this.expiresAt, this.#capAt)
    if (this.#hasWaited)
      this.#places.push({ type: 'granted', resource: this.resource, id: this.id, fence: this.#fence })
  }

  /** The claim that this one waits for has left. If that was the head of the line, this one is it now: nothing else was between them. */
  #follow({ isHead, lastFence }: { isHead: boolean; lastFence: number }): void {
    this.#cue = null
    const isSure = isHead && this.state === 'waiting' && !this.isUncertain && !this.#settling
    // Where the head has taken fences after we came, a list tells from which one to go on.
    if (isSure && lastFence < this.#fence) this.#hold()
    else void this.settle().catch(() => {})
  }

  /** Puts a new node in the place of ours. */
  async #renew(name: ClaimName, place: Omit<ClaimName, 'name' | 'id'>): Promise<void> {
    this.#leaving = name.name
    try {
      if (!(await this.replace([name], place))) this.lose()
    } finally {
      this.#leaving = null
    }
  }

  async #mark(): Promise<void> {
    const name = this.#name
    if (!name || this.state === 'gone') return
    await this.#places.session.write((zk) => zk.setData(`${this.#line}/${name.name}`, this.#data()))
    this.#owesMark = false
  }

  async #watch(cue: Cue, mine: ClaimName): Promise<void> {
    const path = cue.type === 'line' ? this.#line : `${this.#line}/${cue.name}`
    if (this.#cue?.path === path) return
    this.#unwatch()
    const own = mine.capacity === EXCLUSIVE ? this.#places.stayAt(path) : undefined
    if (!own) return this.#watchOnServer(cue, path, mine)
    // Of our own claims we know without the server when they leave.
    own.#followers.add(this)
    this.#cue = { path, stop: () => own.#followers.delete(this) }
  }

  async #watchOnServer(cue: Cue, path: string, mine: ClaimName): Promise<void> {
    const { zk } = this.#places.session
    const watch = (): void => {
      if (this.#cue?.stop !== stop) return
      this.#cue = null
      void this.settle().catch(() => {})
    }
    const stop = (): void => zk.unwatch(path, watch)
    // Before it is sent: the event may come right behind the answer.
    this.#cue = { path, stop }
    try {
      const isOver =
        cue.type === 'line' ? await this.#watchLine(zk, mine, watch) : await this.#watchNode(zk, path, watch)
      if (!isOver) return
      this.#isStale = true
    } catch (error) {
      this.#unwatch()
      throw error
    }
    this.#unwatch()
  }

  /** Whether the line has changed to our advantage since we listed it. */
  async #watchLine(zk: ZooKeeperClient, mine: ClaimName, watch: WatchListener): Promise<boolean> {
    const { children, stat } = await zk.getChildren(this.#line, { watch })
    const line = this.#places.line(children, stat)
    const found = line.find(mine.name)
    return !found || line.standing(found).isHeld
  }

  /** Whether the node has left, or was marked as granted, since we listed. */
  async #watchNode(zk: ZooKeeperClient, path: string, watch: WatchListener): Promise<boolean> {
    const stat = await lookAt(zk, path, watch)
    if (!stat) return true
    const mark = `${path} ${stat.version}`
    const isNews = stat.version > 0 && mark !== this.#seenMark
    this.#seenMark = mark
    return isNews
  }

  #unwatch(): void {
    this.#cue?.stop()
    this.#cue = null
  }

  async #watchOwn(): Promise<void> {
    const name = this.#name
    if (!name || this.state === 'gone') return
    const path = `${this.#line}/${name.name}`
    const listener: WatchListener = ({ type }) => {
      if (this.#name !== name || this.#leaving === name.name || this.isUncertain) return
      this.#isOwnWatched = false
      if (type === 'deleted') this.lose()
      else void this.#watchOwn().catch(() => {})
    }
    const stat = await lookAt(this.#places.session.zk, path, listener)
    if (this.#name !== name) return
    if (stat) this.#isOwnWatched = true
    else if (!this.isUncertain) this.lose()
  }

  #forget(isHead = false): void {
    if (this.#name) this.#vacate(this.#name, isHead)
    this.#name = null
    this.#unwatch()
  }

  /** `isHead`: it held all, and has left by itself. */
  #vacate({ name }: ClaimName, isHead: boolean): void {
    this.#places.left(`${this.#line}/${name}`)
    const followers = [...this.#followers]
    this.#followers.clear()
    for (const follower of followers) follower.#follow({ isHead, lastFence: this.#topFence })
  }
}

/** null: it is not there. Then nothing is watched either, unlike with `exists`: nodes of claims never come again. */
async function lookAt(zk: ZooKeeperClient, path: string, watch: WatchListener): Promise<Stat | null> {
  try {
    return (await zk.getData(path, { watch })).stat
  } catch (error) {
    if (hasCode(error, 'NO_NODE')) return null
    throw error
  }
}
