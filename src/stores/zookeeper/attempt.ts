import type { ClaimRequest } from '../../contract/store.js'
import type { WatchListener } from '../../drivers/zookeeper/index.js'
import type { LineClaim } from './claim.js'
import { type Departure, isAlone } from './emptied.js'
import { hasCode, isUncertain } from './failures.js'
import type { ListedLine } from './line.js'
import { type ClaimName, lastFenceOf, successorName } from './names.js'
import {
  createNode,
  findNode,
  madeNode,
  removeNode,
  replaceNodes,
  touchLine,
  watchNode,
} from './node-writes.js'
import { type MadeNode, OwnNode } from './own-nodes.js'
import type { ZooKeeperSpace } from './space.js'

/** How often a create is tried when the line's node vanishes between its creation and its use. */
const MOST_CREATES = 5

/** A place in line: everything of a claim's name but the name itself and the id. */
export type LinePlace = Omit<ClaimName, 'name' | 'id'>

/**
 * One attempt to have a claim in line. It makes the claim's node, replaces and removes it, and
 * finds it again when an answer was lost.
 */
export class ClaimAttempt {
  readonly line: string
  readonly #space: ZooKeeperSpace
  readonly #owner: LineClaim
  readonly #request: ClaimRequest
  /**
   * Stands in the data of its nodes, which tells them from those of other attempts under the same
   * id.
   */
  readonly #number: number
  #node: OwnNode | null = null
  #isUncertain = false
  /** The node that is being replaced: its end is not a loss. */
  #replaced: OwnNode | null = null

  constructor(space: ZooKeeperSpace, owner: LineClaim, request: ClaimRequest) {
    this.#space = space
    this.#owner = owner
    this.#request = request
    this.#number = space.session.newAttempt()
    this.line = space.lineOf(request.resource)
  }

  /** null: there is none that we know of. */
  get node(): OwnNode | null {
    return this.#node
  }

  /** A write was not answered: the node may be another one than `node`. */
  get isUncertain(): boolean {
    return this.#isUncertain
  }

  /**
   * Joins the end of the line, and lists it. null: no other claim was there, which needed no list.
   */
  async join(): Promise<ListedLine | null> {
    const { joins, own, emptied, session, format } = this.#space
    const { resource } = this.#request
    const prefix = `${this.line}/${format.prefix(this.#request)}`
    let mustOpen = !own.isIn(resource) || joins.isClosed(resource)
    const open = (): void => {
      if (mustOpen) joins.open(resource)
      mustOpen = false
    }
    const turn = mustOpen ? joins.close(resource) : null
    if (turn) await turn
    try {
      for (let count = 1; ; count++) {
        const left = emptied.take(resource)
        // Both at once: the server handles them in order, so the list has the node and everything
        // before it.
        const creating = createNode(this.#space, resource, prefix, this.#data)
        const listing = left ? null : this.#space.list(resource)
        listing?.catch(() => {})
        if (own.isIn(resource)) open()
        try {
          const made = madeNode(this.#space, this.#request, prefix, await creating)
          this.#setNode(made).isOriginal = true
          open()
          if (left && isAlone(made.claim.sequence, made.zxid, left)) return null
          return await this.#listed(made, listing)
        } catch (error) {
          if (!hasCode(error, 'NO_NODE') || count === MOST_CREATES) throw error
          await session.makePath(this.line)
        }
      }
    } catch (error) {
      throw this.#noted(error)
    } finally {
      open()
    }
  }

  /**
   * Removes the nodes of `others` and takes `place`, in one step. false: they were gone, or the
   * line's node has another version than `version`.
   */
  async replace(others: readonly ClaimName[], place: LinePlace, version?: number): Promise<boolean> {
    const unnamed = { ...place, id: this.#request.id }
    const claim = { ...unnamed, name: successorName(unnamed) }
    const own = this.#node
    // The node that it already has in line is removed in the same step.
    const leaving = own ? [...others.filter(({ name }) => name !== own.claim.name), own.claim] : others
    this.#replaced = own
    try {
      const zxid = await replaceNodes(this.#space, this.line, leaving, claim, this.#data, version)
      if (zxid === null) return false
      this.#tellRevoked(others)
      this.#setNode({ path: `${this.line}/${claim.name}`, claim, zxid })
      return true
    } catch (error) {
      throw this.#noted(error)
    } finally {
      this.#replaced = null
    }
  }

  /** Finds out which node it has, after a lost answer. false: none. */
  async recover(): Promise<boolean> {
    const found = await findNode(this.#space, this.#request, this.#number)
    if (found) this.#setNode(found)
    else this.forget()
    this.#isUncertain = false
    return found !== null
  }

  /** null: the node was gone. */
  remove(node: OwnNode, isAnnounced: boolean): Promise<Departure | null> {
    return removeNode(this.#space, node, isAnnounced)
  }

  /**
   * Reserves fences above all that the line has given so far; the transaction. null: the node is
   * gone.
   */
  async reserve(): Promise<bigint | null> {
    const node = this.#node
    if (!node) return null
    node.isOriginal = false
    const zxid = await touchLine(this.#space, this.line, node)
    if (zxid !== null) node.lastFence = lastFenceOf(zxid)
    return zxid
  }

  /** Writes to its node, which claims behind it watch. */
  async mark(): Promise<void> {
    const node = this.#node
    if (node) await this.#space.session.zk.setData(node.path, this.#data)
  }

  /** From now on the server tells when others remove the node. */
  async watch(): Promise<void> {
    const node = this.#node
    if (!node || node.isWatched) return
    const listener: WatchListener = ({ type }) => {
      if (this.#node !== node || this.#replaced === node || this.#isUncertain) return
      node.isWatched = false
      if (type === 'deleted') this.#owner.lose()
      else this.#owner.watchNode()
    }
    const stat = await watchNode(this.#space.session.zk, node.path, listener)
    if (this.#node !== node) return
    if (stat) node.isWatched = true
    else if (!this.#isUncertain) this.#owner.lose()
  }

  /** The node is gone. `wasHead`: its claim held everything, and released it. */
  forget(wasHead = false): void {
    const node = this.#node
    if (!node) return
    this.#node = null
    this.#space.own.remove(node)
    node.tellFollowers(wasHead)
  }

  #setNode(made: MadeNode): OwnNode {
    this.forget()
    const node = new OwnNode(this.#owner, made)
    this.#node = node
    this.#isUncertain = false
    this.#space.own.add(node)
    this.#owner.onNode()
    return node
  }

  /** Only claims of this client: other clients see their nodes vanish. */
  #tellRevoked(others: readonly ClaimName[]): void {
    for (const { name } of others) {
      const owner = this.#space.own.at(`${this.line}/${name}`)?.owner
      if (owner !== this.#owner) owner?.lose()
    }
  }

  async #listed({ claim }: MadeNode, listing: Promise<ListedLine> | null): Promise<ListedLine> {
    const { resource } = this.#request
    const listed = await (listing ?? this.#space.list(resource))
    // If the batch was refused, its writes were sent again one by one: then the list came before
    // the node.
    return listed.find(claim.name) ? listed : this.#space.list(resource)
  }

  #noted(error: unknown): unknown {
    if (isUncertain(error)) this.#isUncertain = true
    return error
  }

  get #data(): string {
    return this.#space.dataOf(this.#request.info, this.#number)
  }
}
