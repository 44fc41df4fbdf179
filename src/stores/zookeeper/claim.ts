import { EXCLUSIVE } from '../../contract/constants.js'
import type { ClaimRequest } from '../../contract/store.js'
import { CallQueue } from '../shared/call-queue.js'
import { ClaimExpiry } from '../shared/claim-expiry.js'
import { ClaimAttempt, type LinePlace } from './attempt.js'
import { hasCode } from './failures.js'
import type { ListedLine } from './line.js'
import { type ClaimName, checkBlock, fenceOf } from './names.js'
import type { OwnNode } from './own-nodes.js'
import { LinePosition } from './position.js'
import type { ZooKeeperSpace } from './space.js'

/**
 * - `new`: it has no node yet, or the answer that tells of it was lost
 * - `waiting`, `held`: it is in line
 * - `gone`: it has left the line, is leaving it, or was removed
 */
export type ClaimState = 'new' | 'waiting' | 'held' | 'gone'

/** One claim of this client, from its request to its end. */
export class LineClaim {
  readonly resource: string
  readonly id: string
  /** Of resource and id. */
  readonly key: string
  readonly expiry: ClaimExpiry
  readonly attempt: ClaimAttempt
  /** The calls of the engine for this claim. */
  readonly calls = new CallQueue()
  readonly #space: ZooKeeperSpace
  readonly #request: ClaimRequest
  #state: ClaimState = 'new'
  /** null: it has not had to wait. */
  #position: LinePosition | null = null
  /**
   * The engine may have another claim under the same id by now: no push tells of this one any more.
   */
  #isAbandoned = false
  /** No other claim was in the line when it was granted. */
  #wasAlone = false
  /** Whether others wait for it; undefined: the line was not listed for the next reply. */
  #isWanted: boolean | undefined
  #owesMark = false

  constructor(space: ZooKeeperSpace, request: ClaimRequest, key: string, now: number) {
    checkBlock(request.block)
    this.#space = space
    this.#request = request
    this.resource = request.resource
    this.id = request.id
    this.key = key
    this.expiry = new ClaimExpiry(request, now)
    this.attempt = new ClaimAttempt(space, this, request)
  }

  get state(): ClaimState {
    return this.#state
  }

  get position(): LinePosition {
    this.#position ??= new LinePosition(this.#space, this.attempt.line, this)
    return this.#position
  }

  get fence(): number {
    return this.attempt.node?.fence ?? 0
  }

  isAlive(now: number): boolean {
    return this.#state !== 'gone' && this.expiry.at > now
  }

  /** It has joined a line in which no other claim was. */
  grantAlone(): void {
    // The session may have ended between the answer and this call.
    if (this.#state !== 'waiting') return
    this.#wasAlone = true
    this.#isWanted = false
    this.#hold()
  }

  /** Finds out what became of a write whose answer was lost. */
  async recover(): Promise<void> {
    if (!this.attempt.isUncertain || (await this.attempt.recover())) return
    if (this.#state !== 'new') this.lose()
  }

  /** Catches up with the server, for a pulse or a new connection. */
  async refresh(): Promise<void> {
    if (this.#position?.updating) await this.#position.updating
    await this.recover()
    if (this.#state !== 'gone') await this.attempt.watch()
    if (this.#owesMark) await this.#mark()
    // In a counting line a claim may be next without knowing it: after a resize, no other claim
    // tells it.
    if (this.#state === 'waiting') await this.position.update()
  }

  /**
   * Lists the line to learn whether others wait, if the engine passes this hold on and so has to
   * know.
   */
  async lookBehind(block = 0): Promise<void> {
    if (this.#state !== 'held' || (block === 0 && this.#request.block === 1)) return
    this.#isWanted = (await this.#space.list(this.resource)).isWanted
  }

  /**
   * Whether others wait for it, if the line was listed for this reply; not for a later one. Claims
   * of this client are known at any time.
   */
  takeWanted(): boolean | undefined {
    const isWanted = this.attempt.node?.isFollowed ? true : this.#isWanted
    this.#isWanted = undefined
    return isWanted
  }

  /** From now on the server tells when others remove the node. */
  watchNode(): void {
    if (this.#state !== 'gone') void this.attempt.watch().catch(() => {})
  }

  /** Leaves the line. false: it was not there any more. */
  async leave(): Promise<boolean> {
    for (;;) {
      if (this.attempt.isUncertain) await this.attempt.recover()
      const { node } = this.attempt
      if (!node) break
      const before = this.#state
      const isHead = before === 'held' && node.claim.permits === EXCLUSIVE
      const isAnnounced = isHead && this.#isAwaited(node)
      // From now on the end of the node is not a loss.
      this.#state = 'gone'
      const departure = await this.attempt.remove(node, isAnnounced).catch((error) => {
        // The node has ended with its session.
        if (hasCode(error, 'SESSION_EXPIRED')) return null
        this.#state = before
        throw error
      })
      // The node may have been replaced by another one of this claim meanwhile.
      if (!departure && (this.attempt.isUncertain || this.attempt.node !== node)) continue
      if (departure && isHead && this.#wasAlone) this.#space.emptied.remember(this.resource, departure)
      this.#forget(isHead && departure !== null)
      return departure !== null
    }
    this.#position?.stopWatching()
    return false
  }

  /** Gives permits back, and keeps its place and fence. */
  async shrink(permits: number): Promise<void> {
    const { node } = this.attempt
    if (node && permits < node.claim.permits)
      await this.#renewNode(node.claim, { ...node.claim, permits, fence: node.fence })
  }

  /**
   * Reserves a block of fences above all that the line has given; its first. null: the claim is
   * gone.
   */
  async reserve(block: number): Promise<number | null> {
    checkBlock(block)
    const zxid = await this.attempt.reserve()
    if (zxid !== null) return fenceOf(zxid)
    this.lose()
    return null
  }

  /** The engine does not want it any more; its node, if it has one, is about to be removed. */
  abandon(): void {
    this.#isAbandoned = true
  }

  /** It has a node now. */
  onNode(): void {
    if (this.#state === 'new') this.#state = 'waiting'
  }

  /** It was removed by others, or with its session. Tells the client. */
  lose(): void {
    if (this.#state === 'gone') return
    this.#state = 'gone'
    this.#forget(false)
    if (!this.#isAbandoned) this.#space.push({ type: 'lost', resource: this.resource, id: this.id })
  }

  /**
   * `line` says that it holds. `isOvertaken`: the line gave higher fences than its own to claims
   * before it.
   */
  async grant(line: ListedLine, mine: ClaimName, isOvertaken: boolean): Promise<void> {
    if (isOvertaken) await this.#renewNode(mine, { ...mine, fence: null })
    if (this.#state !== 'waiting') return
    if (!this.expiry.hasWaited) this.#isWanted = line.isWanted
    this.#wasAlone = line.claims.length === 1 && !line.pin && !line.mark && this.#space.format.isOwn
    this.#hold()
    if (line.capacity === EXCLUSIVE || line.isLast(mine)) return
    // The claim behind us is next now, and watches our node: it may have seen us wait before we
    // knew of our grant.
    this.#owesMark = true
    void this.#mark().catch(() => {})
  }

  /**
   * What it waits for has changed. `isReleased`: the holder of everything has left, and this claim
   * follows it.
   */
  onPredecessorChange(isReleased: boolean): void {
    const { node, isUncertain } = this.attempt
    // If its own node had been removed, its watch would have told so before this.
    const isSure = isReleased && node?.isWatched && !isUncertain && !this.#position?.updating
    if (isSure && this.#state === 'waiting') this.#hold()
    else void this.position.update().catch(() => {})
  }

  /** The same, of a node of this client. */
  onPredecessorLeft(isReleased: boolean): void {
    this.#position?.stopWatching()
    this.onPredecessorChange(isReleased)
  }

  #hold(): void {
    this.#state = 'held'
    this.#position?.stopWatching()
    this.expiry.grant(this.#space.env.now())
    if (this.expiry.hasWaited && !this.#isAbandoned)
      this.#space.push({ type: 'granted', resource: this.resource, id: this.id, fence: this.fence })
  }

  #forget(wasHead: boolean): void {
    this.attempt.forget(wasHead)
    this.#position?.stopWatching()
  }

  async #renewNode(name: ClaimName, place: LinePlace): Promise<void> {
    if (!(await this.attempt.replace([name], place))) this.lose()
  }

  async #mark(): Promise<void> {
    if (this.#state === 'gone') return
    await this.attempt.mark()
    this.#owesMark = false
  }

  /**
   * Whether claims of other clients are likely to wait for its release, and may take it as their
   * grant.
   */
  #isAwaited(node: OwnNode): boolean {
    return this.expiry.hasWaited && !node.isFollowed && node.isOriginal && this.#space.format.isOwn
  }
}
