import { admit } from '../../contract/admit.js'
import { EXCLUSIVE } from '../../contract/constants.js'
import { type NodeFormat, OWN_FORMAT } from './format.js'
import {
  type ClaimName,
  compareSequences,
  type MarkName,
  type PinName,
  parseMark,
  parsePin,
} from './names.js'

/** What a waiting claim has to watch: one node, or the list of the line. */
export type WatchTarget = NodeTarget | { readonly type: 'line' }

interface NodeTarget {
  readonly type: 'node'
  readonly name: string
  /** Once the claim of that node, holding everything, releases it, the waiting claim is granted. */
  readonly isOnlyObstacle: boolean
}

/** A line as the list of its nodes shows it. */
export class ListedLine {
  /** In the order of the line. */
  readonly claims: readonly ClaimName[]
  readonly pin: PinName | undefined
  readonly mark: MarkName | undefined
  /** The names of all pins and marks. */
  readonly settings: readonly string[]
  /** Of the line's node, which every resize changes; null: there is no such node. */
  readonly version: number | null
  /**
   * The last transaction that gave fences out of order. Older claims take later ones when they are
   * granted.
   */
  readonly lastJump: bigint
  readonly #holdCount: number
  readonly #indexes: ReadonlyMap<string, number>

  constructor(
    names: readonly string[],
    lastJump: bigint,
    format: NodeFormat = OWN_FORMAT,
    version: number | null = null,
  ) {
    this.version = version
    // Other software writes to the node of a shared line for its own reasons.
    this.lastJump = format.isOwn ? lastJump : 0n
    const claims: ClaimName[] = []
    const settings: string[] = []
    for (const name of names) {
      const claim = format.parse(name)
      if (claim) claims.push(claim)
      else {
        const [pin, mark] = [parsePin(name), parseMark(name)]
        this.pin ??= pin
        this.mark ??= mark
        if (pin || mark) settings.push(name)
      }
    }
    this.settings = settings
    this.claims = claims.sort((one, other) => compareSequences(one.sequence, other.sequence))
    this.#holdCount = this.#countHolds()
    this.#indexes = new Map(this.claims.map(({ name }, index) => [name, index]))
  }

  /** undefined: the line is empty and nothing is pinned, so the next claim decides. */
  get capacity(): number | undefined {
    return this.pin?.capacity ?? this.claims[0]?.capacity
  }

  /**
   * The longest prefix that fits, and the claims that held when the capacity was changed. Nothing
   * else decides.
   */
  get holds(): readonly ClaimName[] {
    return this.claims.slice(0, this.#holdCount)
  }

  /** A claim waits. */
  get isWanted(): boolean {
    return this.claims.length > this.#holdCount
  }

  find(name: string): ClaimName | undefined {
    return this.claims[this.#indexes.get(name) ?? Infinity]
  }

  isLast({ name }: ClaimName): boolean {
    return this.claims.at(-1)?.name === name
  }

  /** Whether a claim with the capacity that it declares can be in the line. */
  agrees(request: { capacity: number; permits: number }): boolean {
    const capacity = this.capacity ?? request.capacity
    const isKnown = request.capacity === capacity || request.capacity === this.pin?.declared
    return isKnown && request.permits <= capacity
  }

  /** Whether the claim is held; if not, how many wait ahead of it, and what it has to watch. */
  standing(mine: ClaimName): { isHeld: true } | { isHeld: false; ahead: number; target: WatchTarget } {
    const index = this.#indexes.get(mine.name) ?? 0
    if (index < this.#holdCount) return { isHeld: true }
    const ahead = index - this.#holdCount
    const isCounting = (this.capacity ?? mine.capacity) !== EXCLUSIVE
    const target = isCounting ? this.#countingTarget(index) : this.#lockTarget(index)
    return { isHeld: false, ahead, target }
  }

  /**
   * As few claims ahead of it as it takes to make it wait: while they stay, it is not granted. The
   * last ones, which are likely to stay longest.
   */
  obstacles(mine: ClaimName): ClaimName[] {
    const ahead = this.claims.slice(0, this.#indexes.get(mine.name) ?? 0).toReversed()
    const obstacles: ClaimName[] = []
    let free = (this.capacity ?? mine.capacity) - mine.permits
    for (const claim of ahead.toSorted((one, other) => other.permits - one.permits)) {
      if (free < 0) break
      obstacles.push(claim)
      free -= claim.permits
    }
    return obstacles
  }

  /** All claims that the mark is about have left. */
  get isMarkStale(): boolean {
    return this.mark !== undefined && !this.claims.some((claim) => this.#wasHeld(claim))
  }

  /**
   * In a lock's line: the last claim that excludes this one by itself. So few claims watch the same
   * node.
   */
  #lockTarget(index: number): WatchTarget {
    const mine = this.claims[index]?.permits ?? 0
    const ahead = this.claims.slice(0, index)
    const last = ahead.findLastIndex(({ permits }) => permits + mine > EXCLUSIVE)
    const obstacle = ahead.at(last)
    const between = last < 0 ? ahead : ahead.slice(last + 1)
    const permits = between.reduce((sum, claim) => sum + claim.permits, mine)
    const isPlain = permits <= EXCLUSIVE && !this.pin && !this.mark
    const isOnlyObstacle = isPlain && obstacle?.permits === EXCLUSIVE
    return { type: 'node', name: obstacle?.name ?? '', isOnlyObstacle }
  }

  /**
   * In a counting line several claims together may exclude this one. The next claim watches the
   * line, every other one the claim before it, which writes to its node when it is granted.
   */
  #countingTarget(index: number): WatchTarget {
    if (index === this.#holdCount) return { type: 'line' }
    return { type: 'node', name: this.claims[index - 1]?.name ?? '', isOnlyObstacle: false }
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
