import type { ClaimView, InspectQuery, LineView } from '../../contract/store.js'
import { decode } from '../shared/encoding.js'
import { askAgain, hasCode } from './failures.js'
import type { ListedLine } from './line.js'
import { type ClaimName, fenceOf, markName, pinName } from './names.js'
import { readData, type ZooKeeperSpace } from './space.js'

/** After so many changes of a line while it is worked on, the call fails. */
const MOST_CONFLICTS = 20
const CONFLICTS = ['BAD_VERSION', 'NO_NODE', 'NODE_EXISTS'] as const

/** What operators do with lines: look at them, break holds, change capacities. */
export class LineAdmin {
  readonly #space: ZooKeeperSpace
  readonly #leftMs: (resource: string, id: string) => number | undefined

  /** `leftMs`: when a claim of this client expires, which its node does not show. */
  constructor(space: ZooKeeperSpace, leftMs: (resource: string, id: string) => number | undefined) {
    this.#space = space
    this.#leftMs = leftMs
  }

  async evict(resource: string, fence: number | null): Promise<ClaimView[]> {
    const line = await this.#space.listInSync(resource)
    const revoked: ClaimView[] = []
    // An id may hold twice: its client has repeated the claim and not removed the first attempt
    // yet.
    for (const claim of line.holds) {
      const view = await this.#view(resource, claim, true)
      if (!view || (fence !== null && view.fence !== fence)) continue
      await this.#remove(resource, claim.name)
      revoked.push(view)
    }
    return revoked
  }

  async cancel(resource: string, id: string): Promise<ClaimView[]> {
    for (let count = 1; count <= MOST_CONFLICTS; count++) {
      const line = await this.#space.listInSync(resource)
      if (line.holds.some((hold) => hold.id === id)) return []
      // Of an attempt that was repeated there may be two.
      const waiting = line.claims.filter((claim) => claim.id === id)
      const [first] = waiting
      if (!first) return []
      const view = await this.#view(resource, first, false)
      if (view && (await this.#removeWaiting(resource, line, waiting))) return [view]
    }
    throw askAgain(`The line of '${resource}' changed too often`)
  }

  /** In one step with the check that they still wait; false: the line has changed. */
  async #removeWaiting(resource: string, line: ListedLine, waiting: readonly ClaimName[]): Promise<boolean> {
    const path = this.#space.lineOf(resource)
    const kept = [...line.obstacles(waiting[0] as ClaimName), ...(line.pin ? [line.pin] : [])]
    try {
      await this.#space.session.zk.multi([
        ...kept.map(({ name }) => ({ type: 'check', path: `${path}/${name}` }) as const),
        ...waiting.map(({ name }) => ({ type: 'delete', path: `${path}/${name}` }) as const),
      ])
      return true
    } catch (error) {
      if (hasCode(error, 'NO_NODE')) return false
      throw error
    }
  }

  async resize(resource: string, declared: number, capacity: number): Promise<void> {
    for (let count = 1; count <= MOST_CONFLICTS; count++) {
      const line = await this.#space.listInSync(resource)
      const { holds } = line
      if (!(await this.#setCapacity(resource, line, declared, capacity))) continue
      // A waiter that wants more than the capacity would block the line forever: remove it, and its
      // next claim is refused.
      for (const claim of line.claims)
        if (!holds.includes(claim) && claim.permits > capacity) await this.#remove(resource, claim.name)
      return
    }
    throw askAgain(`The line of '${resource}' changed too often`)
  }

  /** false: another call has changed the line since it was listed. */
  #setCapacity(resource: string, line: ListedLine, declared: number, capacity: number): Promise<boolean> {
    // No pin is needed once every claim in the line declares that capacity.
    const isDeclared = declared === capacity && line.claims.every((claim) => claim.capacity === capacity)
    const { holds } = line
    const used = holds.reduce((sum, { permits }) => sum + permits, 0)
    const last = used > capacity ? holds.at(-1) : undefined
    return this.#replaceSettings(resource, line, [
      ...(isDeclared ? [] : [pinName(declared, capacity)]),
      ...(last ? [markName(last.sequence)] : []),
    ])
  }

  async #replaceSettings(
    resource: string,
    { settings, version }: ListedLine,
    after: readonly string[],
  ): Promise<boolean> {
    const { session } = this.#space
    const path = this.#space.lineOf(resource)
    const old = settings.filter((name) => !after.includes(name))
    const add = after.filter((name) => !settings.includes(name))
    if (old.length + add.length === 0) return true
    if (version === null) {
      await session.makePath(path)
      return false
    }
    try {
      await session.zk.multi([
        // Otherwise two calls at once would each leave a pin.
        { type: 'set', path, data: '', version },
        ...old.map((name) => ({ type: 'delete', path: `${path}/${name}` }) as const),
        ...add.map((name) => ({ type: 'create', path: `${path}/${name}`, acl: session.acl }) as const),
      ])
      return true
    } catch (error) {
      if (CONFLICTS.some((code) => hasCode(error, code))) return false
      throw error
    }
  }

  async *inspect({ prefix, resource }: InspectQuery): AsyncIterable<LineView> {
    const names = resource === undefined ? await this.#lineNames() : [this.#space.format.lineName(resource)]
    for (const each of names
      .map((name) => this.#space.format.resourceOf(name))
      .filter((name) => name !== null)
      .filter((name) => name.startsWith(prefix))
      .sort()) {
      const line = await this.#space.list(each)
      const claims = await this.#views(each, line)
      const isShown = claims.length > 0 || (resource !== undefined && line.pin !== undefined)
      if (!isShown || line.capacity === undefined) continue
      const view = { resource: each, capacity: line.capacity, claims }
      yield line.pin ? { ...view, declared: line.pin.declared } : view
    }
  }

  /** On shared lines the space is not in the path. */
  async spaces(): Promise<string[]> {
    const { format, root, name } = this.#space
    if (!format.isOwn) return [name]
    return (await this.#childrenOf(root)).map(decode).filter((space) => space !== null)
  }

  #lineNames(): Promise<string[]> {
    return this.#childrenOf(this.#space.linesPath)
  }

  async #childrenOf(path: string): Promise<string[]> {
    try {
      return (await this.#space.session.zk.getChildren(path)).children
    } catch (error) {
      if (hasCode(error, 'NO_NODE')) return []
      throw error
    }
  }

  async #views(resource: string, line: ListedLine): Promise<ClaimView[]> {
    const holds = new Set(line.holds)
    const views = line.claims.map((claim) => this.#view(resource, claim, holds.has(claim)))
    return (await Promise.all(views)).filter((view) => view !== null)
  }

  /** null: it has left since the line was listed. */
  async #view(resource: string, claim: ClaimName, isHeld: boolean): Promise<ClaimView | null> {
    try {
      const path = `${this.#space.lineOf(resource)}/${claim.name}`
      const { data, stat } = await this.#space.session.zk.getData(path)
      const { info, timeoutMs } = readData(data)
      const { id, permits } = claim
      const fence = isHeld ? (claim.fence ?? fenceOf(stat.czxid)) : null
      // The difference of two wall clocks, the leader's and ours: only for people.
      const ageMs = Math.max(0, this.#space.env.wallMs() - stat.mtimeMs)
      return { id, permits, fence, info, ageMs, expiresInMs: this.#leftMs(resource, id) ?? timeoutMs }
    } catch (error) {
      if (hasCode(error, 'NO_NODE')) return null
      throw error
    }
  }

  async #remove(resource: string, name: string): Promise<void> {
    const path = `${this.#space.lineOf(resource)}/${name}`
    await this.#space.session.zk.delete(path).catch((error) => {
      if (!hasCode(error, 'NO_NODE')) throw error
    })
  }
}
