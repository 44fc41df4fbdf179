import { admit, EXCLUSIVE } from '../../contract/admit.js'
import { type Format, OWN_FORMAT } from './format.js'
import {
  type ClaimName,
  compareSequences,
  type MarkName,
  type PinName,
  parseMark,
  parsePin,
} from './names.js'

/** What a claim that waits has to watch: one node, or the list of the line. */
export type Cue = { readonly type: 'node'; readonly name: string } | { readonly type: 'line' }

/** A line as a list of node names tells it. */
export class Line {
  /** In the order of the line. */
  readonly claims: readonly ClaimName[]
  readonly pin: PinName | undefined
  readonly mark: MarkName | undefined
  /** The last transaction that gave fences to somebody at the front: those behind, if they are older, take later ones when granted. */
  readonly lastJump: bigint

  constructor(names: readonly string[], lastJump: bigint, format: Format = OWN_FORMAT) {
    // Others write to the node of a line for reasons of their own.
    this.lastJump = format.isOwn ? lastJump : 0n
    this.claims = names
      .map((name) => format.parse(name))
      .filter((claim) => claim !== null)
      .sort((one, other) => compareSequences(one.sequence, other.sequence))
    this.pin = names.map(parsePin).find((pin) => pin !== null)
    this.mark = names.map(parseMark).find((mark) => mark !== null)
  }

  /** undefined: nobody is in it and nothing is pinned, so the next claim decides. */
  get capacity(): number | undefined {
    return this.pin?.capacity ?? this.claims[0]?.capacity
  }

  /** Nothing but the list decides who holds: the longest prefix that fits, and who held when the capacity was changed. */
  get holds(): ClaimName[] {
    const places = this.claims.map((claim) => ({
      permits: claim.permits,
      granted: this.#wasHeld(claim),
      claim,
    }))
    const admitted = new Set(admit(places, this.capacity ?? 0))
    return places.filter((place) => place.granted || admitted.has(place)).map(({ claim }) => claim)
  }

  find(name: string): ClaimName | undefined {
    return this.claims.find((claim) => claim.name === name)
  }

  /** Whether one who believes in this capacity can be in the line. */
  agrees(request: { capacity: number; permits: number }): boolean {
    const capacity = this.capacity ?? request.capacity
    const isKnown = request.capacity === capacity || request.capacity === this.pin?.declared
    return isKnown && request.permits <= capacity
  }

  /** Whether the claim is held; if not, whether it is the next one and what it has to watch. */
  standing(mine: ClaimName): { isHeld: true } | { isHeld: false; isNext: boolean; cue: Cue } {
    const holds = new Set(this.holds)
    if (holds.has(mine)) return { isHeld: true }
    const ahead = this.claims.slice(0, this.claims.indexOf(mine))
    const isNext = ahead.every((other) => holds.has(other))
    return { isHeld: false, isNext, cue: cue(ahead, mine, this.capacity ?? mine.capacity, isNext) }
  }

  /** Everybody whom the mark was about has left. */
  get isMarkStale(): boolean {
    return this.mark !== undefined && !this.claims.some((claim) => this.#wasHeld(claim))
  }

  #wasHeld({ sequence }: ClaimName): boolean {
    return this.mark !== undefined && compareSequences(sequence, this.mark.heldUpTo) <= 0
  }
}

/**
 * In a lock's line, the last of those that bar the claim by themselves: while it is there, nothing else matters, and only few watch one
 * node. In a counting line no single one may be the reason: the next claim watches the line, those behind it the one before them,
 * which marks its node when it is granted.
 */
function cue(ahead: readonly ClaimName[], mine: ClaimName, capacity: number, isNext: boolean): Cue {
  if (capacity !== EXCLUSIVE && isNext) return { type: 'line' }
  const barring =
    capacity === EXCLUSIVE ? ahead.filter((other) => other.permits + mine.permits > capacity) : ahead
  return { type: 'node', name: (barring.at(-1) ?? ahead.at(-1) ?? mine).name }
}
