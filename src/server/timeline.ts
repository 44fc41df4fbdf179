import { parseInfo } from '../primitives/views.js'
import { iso, type SeenClaim, type SeenLine } from './lines.js'
import type { TimelineEntry } from './shapes.js'

/** How far back a timeline goes. */
const KEPT_MS = 5 * 60_000
/** The most entries of one resource. */
const MOST_OF_ONE = 500
/** The most entries of all resources together: some 5 MB. */
const MOST_OF_ALL = 20_000

/** A stretch that is over. Those that go on are in the line itself. */
interface Ended {
  readonly claim: SeenClaim
  readonly toMs: number
  readonly end: 'left' | 'granted'
}

/** What has ended in the lines of a space lately. Only resources that changed take memory. */
export class Timeline {
  /** By resource; the one with the oldest last change first. */
  readonly #ended = new Map<string, Ended[]>()
  #count = 0

  /** Notes what differs between two looks at a line; null: nobody is in it any more. */
  note(before: SeenLine, after: SeenLine | null, nowMs: number): void {
    const now = new Map(after?.claims.map((claim) => [claim.id, claim]))
    for (const claim of before.claims) {
      const next = now.get(claim.id)
      if (next?.fence === claim.fence) continue
      const isGranted = claim.fence === null && next !== undefined
      this.#add(before.name, { claim, toMs: nowMs, end: isGranted ? 'granted' : 'left' })
    }
    this.#forgetOld(nowMs)
  }

  /** The last minutes of one resource, in the order in which its stretches began. */
  of(name: string, line: SeenLine | undefined, nowMs: number): TimelineEntry[] {
    const ended = (this.#ended.get(name) ?? []).filter(({ toMs }) => toMs > nowMs - KEPT_MS)
    const going = line?.claims ?? []
    const room = Math.max(0, MOST_OF_ONE - ended.length)
    return [...ended.map(endedEntry), ...going.slice(0, room).map(goingEntry)].sort((a, b) =>
      a.from < b.from ? -1 : a.from > b.from ? 1 : 0,
    )
  }

  get size(): number {
    return this.#count
  }

  #add(name: string, ended: Ended): void {
    const list = this.#ended.get(name) ?? []
    list.push(ended)
    this.#count++
    if (list.length > MOST_OF_ONE) {
      list.shift()
      this.#count--
    }
    // Last in the map: it changed last.
    this.#ended.delete(name)
    this.#ended.set(name, list)
  }

  #forgetOld(nowMs: number): void {
    for (const [name, list] of this.#ended) {
      const isOld = (list.at(-1)?.toMs ?? 0) <= nowMs - KEPT_MS
      if (!isOld && this.#count <= MOST_OF_ALL) return
      this.#ended.delete(name)
      this.#count -= list.length
    }
  }
}

function endedEntry({ claim, toMs, end }: Ended): TimelineEntry {
  return { ...goingEntry(claim), to: iso(toMs), end }
}

function goingEntry(claim: SeenClaim): TimelineEntry {
  const { id, fence, sinceMs } = claim
  return {
    id,
    ...parseInfo(claim),
    state: fence === null ? 'waited' : 'held',
    from: iso(sinceMs),
    to: null,
    fence,
    end: null,
  }
}
