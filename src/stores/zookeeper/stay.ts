import { EXCLUSIVE } from '../../contract/constants.js'
import type { ClaimReply, ClaimRequest, Held, Waiting } from '../../contract/store.js'
import type { WatchListener } from '../../drivers/zookeeper/index.js'
import { find, join, lookAt, type Made, remove, replace, touchLine } from './asking.js'
import { isUncertain } from './failures.js'
import type { Line } from './line.js'
import { Lookout } from './lookout.js'
import { type ClaimName, checkBlock, fenceOf, lastFenceOf, successorName } from './names.js'
import type { Places } from './places.js'
import { Term } from './term.js'

/**
 * - `unknown`: not asked for yet, or what became of the asking is not known
 * - `waiting`, `held`: in line
 * - `gone`: not any more
 */
type State = 'unknown' | 'waiting' | 'held' | 'gone'

/** One attempt of this client to have a claim in line, and the node that stands for it. */
export class Stay {
  state: State = 'unknown'
  readonly resource: string
  readonly id: string
  readonly term: Term
  /** It may have a node, though we do not know its name. */
  isUncertain = false
  readonly #places: Places
  /** The path of the line's node. */
  readonly #line: string
  readonly #request: ClaimRequest
  readonly #attempt: number
  /** The client has given it up, and may have another one under the same id: nothing is told of this one any more. */
  #isGivenUp = false
  readonly #lookout: Lookout
  /** Claims of the same client that wait for the end of this one; null: there has been none yet, as it is with most. */
  #followers: Set<Stay> | null = null
  #name: ClaimName | null = null
  #fence = 0
  /** The last of its fences. */
  #topFence = 0
  /** Its node is the one that it came with, and no fences were added: those behind it have higher ones. */
  #isOriginal = false
  /** Nobody else was in the line when it was granted. */
  #isAlone = false
  #isNext = false
  /** Whether others wait for it; undefined: nobody has looked for the answer that is about to be given. */
  #isWanted: boolean | undefined
  #grantsAbove = 0
  #owesMark = false
  #isOwnWatched = false
  /** The node that we are about to put another one in the place of. */
  #leaving: string | null = null
  #isStale = false
  #settling: Promise<void> | null = null
  /** The last call, while it is under way. */
  #turn: Promise<unknown> | null = null

  constructor(places: Places, request: ClaimRequest, now: number) {
    checkBlock(request.block)
    this.#places = places
    this.#request = request
    this.resource = request.resource
    this.id = request.id
    this.#attempt = places.session.newAttempt()
    this.term = new Term(request, now)
    this.#line = places.lineOf(request.resource)
    this.#lookout = new Lookout(places, this.#line, this)
  }

  /** In line, for all we know. */
  isAlive(now: number): boolean {
    return this.state !== 'gone' && this.term.expiresAt > now
  }

  /** One call for a claim at a time, in the order in which they came. */
  turn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn ? this.#turn.then(work, work) : work()
    const over = (): void => {
      if (this.#turn === result) this.#turn = null
    }
    this.#turn = result
    result.then(over, over)
    return result
  }

  /** Joins the end of the line. The line as it was then; null: nobody else was in it, and the claim holds. */
  async enter(): Promise<Line | null> {
    const stand = (made: Made): void => {
      this.#stand(made)
      this.#isOriginal = true
    }
    const line = await this.#certain(join(this.#places, this.#line, this.#request, this.#data, stand))
    if (line) return line
    this.#isAlone = true
    this.#isWanted = false
    this.#hold()
    return null
  }

  /** Takes the place of others, who leave in the same step. false: they were not there any more. */
  async replace(others: readonly ClaimName[], place: Omit<ClaimName, 'name' | 'id'>): Promise<boolean> {
    const unnamed = { ...place, id: this.id }
    const claim = { ...unnamed, name: successorName(unnamed) }
    const own = this.#name
    // The node that it already has in line is removed in the same step.
    const leaving = own ? [...others.filter(({ name }) => name !== own.name), own] : others
    this.#leaving = own?.name ?? null
    try {
      const zxid = await this.#certain(replace(this.#places, this.#line, leaving, claim, this.#data))
      if (zxid === null) return false
      this.#tellRobbed(others)
      this.#stand({ claim, zxid })
      return true
    } finally {
      this.#leaving = null
    }
  }

  /** Looks for the node of a request whose answer was lost. */
  async recover(): Promise<boolean> {
    const found = await find(this.#places, this.#request, this.#attempt)
    if (found) this.#stand(found)
    else this.#forget()
    this.isUncertain = false
    return found !== null
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

  /** Whether others wait for it, for a holder that passes it on, or asks for fences to do so. Others need not know. */
  async lookBehind(block = 0): Promise<void> {
    if (this.state !== 'held' || (block === 0 && this.#request.block === 1)) return
    this.#isWanted = (await this.#places.list(this.resource)).isWanted
  }

  /** It lasts: from now on the server tells us what becomes of its node. */
  attend(): void {
    if (!this.#isOwnWatched) void this.#watchOwn().catch(() => {})
  }

  /** Leaves the line. false: it was not there any more. */
  async leave(): Promise<boolean> {
    for (;;) {
      if (this.isUncertain) await this.recover()
      const name = this.#name
      if (!name) return false
      const isHead = this.state === 'held' && name.permits === EXCLUSIVE
      const departure = await this.#remove(name, isHead)
      // It may have taken another node meanwhile, in the place of this one.
      if (!departure && (this.isUncertain || this.#name !== name)) continue
      if (departure && isHead && this.#isAlone) this.#places.emptied.remember(this.resource, departure)
      this.#forget(isHead && departure !== null)
      return departure !== null
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
    this.#isOriginal = false
    const zxid = this.#name && (await touchLine(this.#places, this.#line, this.#name))
    if (zxid === null) {
      this.lose()
      return null
    }
    this.#topFence = lastFenceOf(zxid)
    return fenceOf(zxid)
  }

  /** Speaks of it: it lives on for so long. */
  keep(now: number, leaseMs: number, presenceMs: number): void {
    if (this.state === 'held') this.term.keepHold(now, leaseMs)
    else this.term.keepPlace(now, presenceMs)
  }

  claimReply(callAt: number): ClaimReply {
    if (this.state === 'held')
      return { status: 'granted', fence: this.#fence, leaseMs: this.#leftMs(callAt), ...this.#wanted() }
    this.term.hasWaited = true
    return this.#waiting(callAt)
  }

  beatReply(callAt: number): Held | Waiting {
    if (this.state !== 'held') return this.#waiting(callAt)
    return { status: 'held', fence: this.#fence, leaseMs: this.#leftMs(callAt), ...this.#wanted() }
  }

  /** Nobody wants it any more; its node, if it has one, is about to be removed. */
  giveUp(): void {
    this.#isGivenUp = true
  }

  /** It is over; tells the client. */
  lose(): void {
    if (this.state === 'gone') return
    this.state = 'gone'
    this.#forget()
    if (!this.#isGivenUp) this.#places.push({ type: 'lost', resource: this.resource, id: this.id })
  }

  /** The follower is told when this one leaves. Returns what ends that. */
  follow(follower: Stay): () => void {
    const followers = this.#followers ?? new Set()
    this.#followers = followers.add(follower)
    return () => followers.delete(follower)
  }

  /** What this one waits for has happened. `isSure`: it was the head of the line and has left, so this one is it now. */
  onCue(isSure: boolean): void {
    if (isSure && this.state === 'waiting' && !this.isUncertain && !this.#settling) this.#hold()
    else void this.settle().catch(() => {})
  }

  /** The lease ends with what we keep, and with what the leader surely gives the session. */
  #leftMs(callAt: number): number {
    return Math.min(this.term.expiresAt, this.#places.session.validUntil) - callAt
  }

  #waiting(callAt: number): Waiting {
    const [presenceMs, isNext, grantsAbove] = [this.#leftMs(callAt), this.#isNext, this.#grantsAbove]
    return { status: 'waiting', presenceMs, isNext, freeInMs: null, grantsAbove }
  }

  /** As we saw it for this answer, and not for a later one. Of our own claims that wait for it we know at any time. */
  #wanted(): { isWanted?: boolean } {
    const isWanted = this.#isFollowed ? true : this.#isWanted
    this.#isWanted = undefined
    return isWanted === undefined ? {} : { isWanted }
  }

  #remove(name: ClaimName, isHead: boolean): ReturnType<typeof remove> {
    const before = this.state
    const removing = remove(this.#places, this.#line, name, isHead && this.#isAwaited)
    // Ours to take away: its end is no news.
    this.state = 'gone'
    return removing.catch((error) => {
      this.state = before
      throw error
    })
  }

  /** Whether others are likely to wait for its word that it leaves, and may go by it. */
  get #isAwaited(): boolean {
    const { format } = this.#places
    return this.term.hasWaited && !this.#isFollowed && this.#isOriginal && format.isOwn
  }

  get #isFollowed(): boolean {
    return this.#followers !== null && this.#followers.size > 0
  }

  #certain<T>(writing: Promise<T>): Promise<T> {
    return writing.catch((error) => {
      if (isUncertain(error)) this.isUncertain = true
      throw error
    })
  }

  #stand({ claim, zxid }: Made): void {
    if (this.#name) this.#vacate(this.#name, false)
    this.#name = claim
    this.#fence = claim.fence ?? fenceOf(zxid)
    this.#topFence = lastFenceOf(zxid)
    this.isUncertain = false
    this.#isOriginal = false
    this.#isOwnWatched = false
    if (this.state === 'unknown') this.state = 'waiting'
    this.#places.stands(this.#line, claim.name, this)
  }

  /** Those of our own client; others see their nodes vanish. */
  #tellRobbed(others: readonly ClaimName[]): void {
    for (const { name } of others) {
      const robbed = this.#places.stayAt(`${this.#line}/${name}`)
      if (robbed !== this) robbed?.lose()
    }
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
    if (await this.#lookout.watch(standing.cue, mine)) this.#isStale = true
  }

  #isBehind(line: Line): boolean {
    return fenceOf(line.lastJump) > this.#fence
  }

  async #grant(line: Line, mine: ClaimName): Promise<void> {
    if (this.#isBehind(line)) await this.#renew(mine, { ...mine, fence: null })
    if (this.state !== 'waiting') return
    if (!this.term.hasWaited) this.#isWanted = line.isWanted
    this.#isAlone = line.claims.length === 1 && !line.pin && !line.mark && this.#places.format.isOwn
    this.#hold()
    if (line.capacity === EXCLUSIVE || line.isLast(mine)) return
    // Whoever waits behind us is next now, and watches our node: it may have seen us wait before we knew of it.
    this.#owesMark = true
    void this.#mark().catch(() => {})
  }

  #hold(): void {
    this.state = 'held'
    this.#lookout.stop()
    this.term.grant(this.#places.env.now())
    if (this.term.hasWaited && !this.#isGivenUp)
      this.#places.push({ type: 'granted', resource: this.resource, id: this.id, fence: this.#fence })
  }

  /** Puts a new node in the place of ours. */
  async #renew(name: ClaimName, place: Omit<ClaimName, 'name' | 'id'>): Promise<void> {
    if (!(await this.replace([name], place))) this.lose()
  }

  get #data(): string {
    return this.#places.dataOf(this.#request.info, this.#attempt)
  }

  async #mark(): Promise<void> {
    const name = this.#name
    if (!name || this.state === 'gone') return
    await this.#places.session.write((zk) => zk.setData(`${this.#line}/${name.name}`, this.#data))
    this.#owesMark = false
  }

  async #watchOwn(): Promise<void> {
    const name = this.#name
    if (!name || this.state === 'gone') return
    const listener: WatchListener = ({ type }) => {
      if (this.#name !== name || this.#leaving === name.name || this.isUncertain) return
      this.#isOwnWatched = false
      if (type === 'deleted') this.lose()
      else void this.#watchOwn().catch(() => {})
    }
    const stat = await lookAt(this.#places.session.zk, `${this.#line}/${name.name}`, listener)
    if (this.#name !== name) return
    if (stat) this.#isOwnWatched = true
    else if (!this.isUncertain) this.lose()
  }

  #forget(isHead = false): void {
    if (this.#name) this.#vacate(this.#name, isHead)
    this.#name = null
    this.#lookout.stop()
  }

  /** `isHead`: it held all, and has left by itself. */
  #vacate({ name }: ClaimName, isHead: boolean): void {
    this.#places.left(this.#line, name, this)
    if (!this.#followers) return
    const followers = [...this.#followers]
    this.#followers = null
    // Where this one has taken fences after the follower came, a list tells from which one to go on.
    for (const follower of followers) follower.#onLeft(isHead && this.#topFence < follower.#fence)
  }

  #onLeft(isSure: boolean): void {
    this.#lookout.stop()
    this.onCue(isSure)
  }
}
