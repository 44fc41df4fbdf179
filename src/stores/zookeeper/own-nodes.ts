import type { Env } from '../../base/env.js'
import type { LineClaim } from './claim.js'
import { type ClaimName, fenceOf, lastFenceOf } from './names.js'

/**
 * Most claims end before that. Only a node that is older, or whose claim has to wait for a lock, is
 * watched for its removal by others.
 */
const WATCH_AFTER_MS = 200

/** A claim's node, and the transaction that made it. */
export interface MadeNode {
  readonly path: string
  readonly claim: ClaimName
  readonly zxid: bigint
}

/**
 * One node of this client in a line. A claim gets a new one when it shrinks or takes over a place.
 */
export class OwnNode {
  readonly owner: LineClaim
  readonly path: string
  readonly claim: ClaimName
  readonly fence: number
  /** The last fence that its claim has reserved. */
  lastFence: number
  /**
   * The claim joined with this node and reserved no fences since: claims behind it have higher
   * ones.
   */
  isOriginal = false
  isWatched = false
  /** Its claim has lasted long enough to be watched. */
  isOld = false
  /** Claims of this client that wait for the end of this node; null: none so far. */
  #followers: Set<LineClaim> | null = null

  constructor(owner: LineClaim, { path, claim, zxid }: MadeNode) {
    this.owner = owner
    this.path = path
    this.claim = claim
    this.fence = claim.fence ?? fenceOf(zxid)
    this.lastFence = lastFenceOf(zxid)
  }

  get isFollowed(): boolean {
    return this.#followers !== null && this.#followers.size > 0
  }

  /** Tells `follower` when this node ends. Returns what cancels that. */
  follow(follower: LineClaim): () => void {
    const followers = this.#followers ?? new Set()
    this.#followers = followers.add(follower)
    return () => followers.delete(follower)
  }

  /** `wasHead`: its claim held everything, and released it. */
  tellFollowers(wasHead: boolean): void {
    if (!this.#followers) return
    const followers = [...this.#followers]
    this.#followers = null
    // If this claim reserved fences after the follower joined, the follower needs a later fence
    // than its own.
    for (const follower of followers) follower.onPredecessorLeft(wasHead && this.lastFence < follower.fence)
  }
}

/** The nodes that this client has in lines. */
export class OwnNodes {
  readonly #env: Env
  readonly #byPath = new Map<string, OwnNode>()
  readonly #countByResource = new Map<string, number>()
  #isTimerSet = false

  constructor(env: Env) {
    this.#env = env
  }

  at(path: string): OwnNode | undefined {
    return this.#byPath.get(path)
  }

  /** Whether one of them is in that line: then the line's own node exists for certain. */
  isIn(resource: string): boolean {
    return this.#countByResource.has(resource)
  }

  add(node: OwnNode): void {
    const { resource } = node.owner
    this.#byPath.set(node.path, node)
    this.#countByResource.set(resource, (this.#countByResource.get(resource) ?? 0) + 1)
    if (this.#isTimerSet) return
    this.#isTimerSet = true
    this.#env.timer(WATCH_AFTER_MS, () => this.#watchOld(), { keepAlive: false })
  }

  remove(node: OwnNode): void {
    const { resource } = node.owner
    const others = (this.#countByResource.get(resource) ?? 1) - 1
    this.#byPath.delete(node.path)
    if (others > 0) this.#countByResource.set(resource, others)
    else this.#countByResource.delete(resource)
  }

  #watchOld(): void {
    this.#isTimerSet = false
    for (const node of this.#byPath.values()) {
      if (node.isOld) continue
      node.isOld = true
      node.owner.watchNode()
    }
  }
}
