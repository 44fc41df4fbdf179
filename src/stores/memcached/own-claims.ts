import type { Env } from '../../base/env.js'
import type { ClaimRow } from '../embedded/rows.js'
import type { LocalMember, MemcachedLine } from './line.js'
import type { LineNews } from './line-draft.js'

/**
 * Tells the clients of this store value what became of their claims. Calls of this process say it
 * themselves; what other processes did shows in the line.
 */
export class OwnClaims {
  readonly #env: Env
  readonly #members = new Map<string, LocalMember>()

  constructor(env: Env) {
    this.#env = env
  }

  add(member: LocalMember): void {
    this.#members.set(member.id, member)
  }

  /** true: it was the last one. */
  remove(member: LocalMember): boolean {
    this.#members.delete(member.id)
    return this.#members.size === 0
  }

  /** From now on, the client hears what becomes of its claim. */
  follow(line: MemcachedLine, id: string, member: LocalMember): void {
    const row = line.image?.rows.get(id)
    if (!row) return
    if (row.fence === null && !line.own.has(id)) line.movedAt = this.#env.now()
    line.own.set(id, { member, isHeld: row.fence !== null, lapsesAt: this.#lapseOf(line, row) })
  }

  /** A batch of this process was written. */
  tell(line: MemcachedLine, news: readonly LineNews[]): void {
    for (const { client, news: push } of news) {
      if (push.type === 'granted') {
        const claim = line.own.get(push.id)
        if (claim) claim.isHeld = true
      } else if (push.type === 'lost') line.own.delete(push.id)
      this.#members.get(client)?.onNews(push)
    }
    if (line.own.size > 0) this.compare(line)
  }

  /** Compares what is known of our claims with the line as it is now. */
  compare(line: MemcachedLine): void {
    const { image, resource } = line
    if (!image || line.own.size === 0) return
    if (image.last !== line.lastFence) {
      line.lastFence = image.last
      line.movedAt = this.#env.now()
    }
    const now = Math.max(image.at, line.node.now())
    for (const [id, claim] of line.own) {
      const row = image.rows.get(id)
      if (row && row.expires > now) {
        claim.lapsesAt = this.#lapseOf(line, row)
        if (row.fence === null || claim.isHeld) continue
        claim.isHeld = true
        claim.member.onNews({ type: 'granted', resource, id, fence: row.fence })
      } else {
        line.own.delete(id)
        // A lapse by the client's own clock is no news. It stands still on a suspended machine.
        if (claim.lapsesAt > this.#env.now()) claim.member.onNews({ type: 'lost', resource, id })
      }
    }
  }
  /** On the monotonic clock, by which the client knows the end as well. */
  #lapseOf({ node }: MemcachedLine, { expires }: ClaimRow): number {
    return this.#env.now() + expires - node.now()
  }
}
