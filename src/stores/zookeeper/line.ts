import { admit } from '../../contract/admit.js'
import { EXCLUSIVE } from '../../contract/constants.js'
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
export type Cue = NodeCue | { readonly type: 'line' }

interface NodeCue {
  readonly type: 'node'
  readonly name: string
  /** Nothing else is in the way: the claim holds when that one has held everything and says that it leaves. */
  readonly isAll: boolean
}

/** A line as a list of node names tells it. */
export class Line {
  /** In the order of the line. */
  readonly claims: readonly ClaimName[]
  readonly pin: PinName | undefined
  readonly mark: MarkName | undefined
  /** The last transaction that gave fences to somebody at the front: those behind, if they are older, take later ones when granted. */
  readonly lastJump: bigint
  readonly #holdCount: number
  readonly #indexes: ReadonlyMap<string, number>

  constructor(names: readonly string[], lastJump: bigint, format: Format = OWN_FORMAT) {
    // Others write to the node of a line for reasons of their own.
    this.lastJump = format.isOwn ? lastJump : 0n
    const claims: ClaimName[] = []
    for (const name of names) {
      const claim = format.parse(name)
      if (claim) claims.push(claim)
      else {
        this.pin ??= parsePin(name)
        this.mark ??= parseMark(name)
      }
    }
    this.claims = claims.sort((one, other) => compareSequences(one.sequence, other.sequence))
    this.#holdCount = this.#countHolds()
    this.#indexes = new Map(this.claims.map(({ name }, index) => [name, index]))
  }

  /** undefined: nobody is in it and nothing is pinned, so the next claim decides. */
  get capacity(): number | undefined {
    return this.pin?.capacity ?? this.claims[0]?.capacity
  }

  /** Nothing but the list decides who holds: the longest prefix that fits, and who held when the capacity was changed. */
  get holds(): readonly ClaimName[] {
    return this.claims.slice(0, this.#holdCount)
  }

  /** Somebody waits. */
  get isWanted(): boolean {
    return this.claims.length > this.#holdCount
  }

  find(name: string): ClaimName | undefined {
    return this.claims[this.#indexes.get(name) ?? Infinity]
  }

  /** Nobody is behind it. */
  isLast({ name }: ClaimName): boolean {
    return this.claims.at(-1)?.name === name
  }

  /** Whether one who believes in this capacity can be in the line. */
  agrees(request: { capacity: number; permits: number }): boolean {
    const capacity = this.capacity ?? request.capacity
    const isKnown = request.capacity === capacity || request.capacity === this.pin?.declared
    return isKnown && request.permits <= capacity
  }

  /** Whether the claim is held; if not, whether it is the next one and what it has to watch. */
  standing(mine: ClaimName): { isHeld: true } | { isHeld: false; isNext: boolean; cue: Cue } {
    const index = this.#indexes.get(mine.name) ?? 0
    if (index < this.#holdCount) return { isHeld: true }
    const isNext = index === this.#holdCount
    const isCounting = (this.capacity ?? mine.capacity) !== EXCLUSIVE
    return { isHeld: false, isNext, cue: isCounting ? this.#countingCue(index) : this.#lockCue(index) }
  }

  /** Everybody whom the mark was about has left. */
  get isMarkStale(): boolean {
    return this.mark !== undefined && !this.claims.some((claim) => this.#wasHeld(claim))
  }

  /** In a lock's line, the last of those that bar the claim by themselves: while it is there, nothing else matters, and only few watch one node. */
  #lockCue(index: number): Cue {
    const mine = this.claims[index]?.permits ?? 0
    const ahead = this.claims.slice(0, index)
    const last = ahead.findLastIndex(({ permits }) => permits + mine > EXCLUSIVE)
    const barring = ahead.at(last)
    const between = last < 0 ? ahead : ahead.slice(last + 1)
    const permits = between.reduce((sum, claim) => sum + claim.permits, mine)
    const isAll = barring?.permits === EXCLUSIVE && permits <= EXCLUSIVE && !this.pin && !this.mark
    return { type: 'node', name: barring?.name ?? '', isAll }
  }

  /**
   * In a counting line no single one may be the reason: the next claim watches the line, those behind it the one before them, which marks its
   * node when it is granted.
   */
  #countingCue(index: number): Cue {
    if (index === this.#holdCount) return { type: 'line' }
    return { type: 'node', name: this.claims[index - 1]?.name ?? '', isAll: false }
  }

  #countHolds(): number {
    const places = this.claims.map((claim) => ({ permits: claim.permits, granted: this.#wasHeld(claim) }))
    const before = places.filter(({ granted }) => granted).length
    return before + admit(places, this.capacity ?? 0).length
  }

  #wasHeld({ sequence }: ClaimName): boolean {
    return this.mark !== undefined && compareSequences(sequence, this.mark.heldUpTo) <= 0
  }
}
