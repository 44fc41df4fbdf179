import type { ClaimView, InspectQuery, LineView } from '../../contract/store.js'
import { hasCode } from './failures.js'
import type { Line } from './line.js'
import { type ClaimName, decode, fenceOf, markName, pinName } from './names.js'
import { type Places, readData } from './places.js'

/** What operators do with lines: look at them, break holds, change capacities. */
export class Operator {
  readonly #places: Places
  readonly #leftMs: (resource: string, id: string) => number | undefined

  /** `leftMs`: what is left of a claim of this client's own, of which we know more than its node tells. */
  constructor(places: Places, leftMs: (resource: string, id: string) => number | undefined) {
    this.#places = places
    this.#leftMs = leftMs
  }

  async evict(resource: string, fence: number | null): Promise<ClaimView[]> {
    const line = await this.#places.listInSync(resource)
    const robbed: ClaimView[] = []
    // Hold by hold: an id may be there twice, where its client has asked again and not removed the first attempt yet.
    for (const claim of line.holds) {
      const view = await this.#view(resource, claim, true)
      if (!view || (fence !== null && view.fence !== fence)) continue
      await this.#remove(resource, claim.name)
      robbed.push(view)
    }
    return robbed
  }

  async resize(resource: string, declared: number, capacity: number): Promise<void> {
    const path = this.#places.lineOf(resource)
    const line = await this.#places.listInSync(resource)
    // Nothing to remember once everybody in the line declares it anyway; until then the line would still go by the old one.
    const isDeclared = declared === capacity && line.claims.every((claim) => claim.capacity === capacity)
    const { holds } = line
    const used = holds.reduce((sum, { permits }) => sum + permits, 0)
    const last = used > capacity ? holds.at(-1) : undefined
    const names = [
      ...(isDeclared ? [] : [pinName(declared, capacity)]),
      ...(last ? [markName(last.sequence)] : []),
    ]
    await this.#change(path, [line.pin?.name, line.mark?.name], names)
    // A waiter that wants more than there will ever be would bar the line for good: send it away to be told so.
    for (const claim of line.claims)
      if (!holds.includes(claim) && claim.permits > capacity) await this.#remove(resource, claim.name)
  }

  /** Puts names in the place of others that tell of the line. */
  async #change(
    path: string,
    before: readonly (string | undefined)[],
    after: readonly string[],
  ): Promise<void> {
    const { session } = this.#places
    const old = before.filter((name) => name !== undefined && !after.includes(name))
    const add = after.filter((name) => !before.includes(name))
    if (old.length + add.length === 0) return
    if (add.length > 0) await session.makePath(path)
    await session.write((zk) =>
      zk.multi([
        ...old.map((name) => ({ type: 'delete', path: `${path}/${name}` }) as const),
        ...add.map((name) => ({ type: 'create', path: `${path}/${name}`, acl: session.acl }) as const),
      ]),
    )
  }

  async *inspect({ prefix, resource }: InspectQuery): AsyncIterable<LineView> {
    const names = resource === undefined ? await this.#lineNames() : [this.#places.format.lineName(resource)]
    for (const each of names
      .map((name) => this.#places.format.resourceOf(name))
      .filter((name) => name.startsWith(prefix))
      .sort()) {
      const line = await this.#places.list(each)
      const claims = await this.#views(each, line)
      const isShown = claims.length > 0 || (resource !== undefined && line.pin !== undefined)
      if (isShown && line.capacity !== undefined) yield { resource: each, capacity: line.capacity, claims }
    }
  }

  /** In the formats of others, the space is not in the path. */
  async spaces(): Promise<string[]> {
    const { format, root, space } = this.#places
    return format.isOwn ? (await this.#childrenOf(root)).map(decode) : [space]
  }

  #lineNames(): Promise<string[]> {
    return this.#childrenOf(this.#places.lines)
  }

  async #childrenOf(path: string): Promise<string[]> {
    try {
      return (await this.#places.session.zk.getChildren(path)).children
    } catch (error) {
      if (hasCode(error, 'NO_NODE')) return []
      throw error
    }
  }

  async #views(resource: string, line: Line): Promise<ClaimView[]> {
    const holds = new Set(line.holds)
    const views = line.claims.map((claim) => this.#view(resource, claim, holds.has(claim)))
    return (await Promise.all(views)).filter((view) => view !== null)
  }

  /** null: it has left since the line was listed. */
  async #view(resource: string, claim: ClaimName, isHeld: boolean): Promise<ClaimView | null> {
    try {
      const path = `${this.#places.lineOf(resource)}/${claim.name}`
      const { data, stat } = await this.#places.session.zk.getData(path)
      const { info, timeoutMs } = readData(data)
      const { id, permits } = claim
      const fence = isHeld ? (claim.fence ?? fenceOf(stat.czxid)) : null
      // Two wall clocks, the leader's and ours: for people.
      const ageMs = Math.max(0, this.#places.env.wallMs() - stat.mtimeMs)
      return { id, permits, fence, info, ageMs, expiresInMs: this.#leftMs(resource, id) ?? timeoutMs }
    } catch (error) {
      if (hasCode(error, 'NO_NODE')) return null
      throw error
    }
  }

  async #remove(resource: string, name: string): Promise<void> {
    const path = `${this.#places.lineOf(resource)}/${name}`
    await this.#places.session
      .write((zk) => zk.delete(path))
      .catch((error) => {
        if (!hasCode(error, 'NO_NODE')) throw error
      })
  }
}
