import { HoldfastError } from '../../base/errors.js'
import { HIGHEST_FENCE } from '../../contract/constants.js'
import { decode, encode } from '../shared/encoding.js'

/** A claim as the name of its node shows it. */
export interface ClaimName {
  readonly name: string
  readonly id: string
  readonly permits: number
  /** The capacity that the claimant declared. */
  readonly capacity: number
  /** Its place in the line. */
  readonly sequence: number
  /**
   * The fence of a claim that gave permits back, which made a new node; null: the node's
   * transaction gives it.
   */
  readonly fence: number | null
}

/** A capacity that `resize` set, with the one that claims still declare. */
export interface PinName {
  readonly name: string
  readonly declared: number
  readonly capacity: number
}

/**
 * The last place that was held when a capacity shrank below what was held: these holds continue.
 */
export interface MarkName {
  readonly name: string
  readonly heldUpTo: number
}

/** How many fences belong to one transaction, for blocks. */
export const FENCES_EACH = 64

// Not the name of any claim: there a colon is encoded as `%3A`.
const PIN = ':pin'
const MARK = ':held'
const SEQUENCES = 2 ** 32

/** The name of a claim's node, up to the number that the server adds. */
export function claimPrefix(id: string, permits: number, capacity: number): string {
  return `${encode(id)},${permits},${capacity},`
}

/** The name of a node that takes an existing place. */
export function successorName(claim: Omit<ClaimName, 'name'>): string {
  const { id, permits, capacity, fence, sequence } = claim
  const kept = fence === null ? '' : `${fence},`
  return `${claimPrefix(id, permits, capacity)}${kept}${formatSequence(sequence)}`
}

export function pinName(declared: number, capacity: number): string {
  return `${PIN},${declared},${capacity}`
}

export function parsePin(name: string): PinName | undefined {
  const [kind, declared, capacity] = name.split(',')
  return kind === PIN ? { name, declared: Number(declared), capacity: Number(capacity) } : undefined
}

export function markName(heldUpTo: number): string {
  return `${MARK},${heldUpTo}`
}

export function parseMark(name: string): MarkName | undefined {
  const [kind, heldUpTo] = name.split(',')
  return kind === MARK ? { name, heldUpTo: Number(heldUpTo) } : undefined
}

/** null: not a claim of ours. */
export function parseClaim(name: string): ClaimName | null {
  const parts = name.split(',')
  const [encodedId = '', permits, capacity] = parts
  const id = decode(encodedId)
  if (id === null || (parts.length !== 4 && parts.length !== 5)) return null
  const claim = {
    name,
    id,
    permits: Number(permits),
    capacity: Number(capacity),
    sequence: Number(parts.at(-1)),
    fence: parts.length === 5 ? Number(parts[3]) : null,
  }
  const { isSafeInteger } = Number
  return isSafeInteger(claim.permits) && isSafeInteger(claim.capacity) && isSafeInteger(claim.sequence)
    ? claim
    : null
}

/**
 * The order of two places. The server counts a parent's changes in 32 bits and continues with
 * negative numbers after the highest one. So the shorter way round decides: a line never has 2^31
 * claims.
 */
export function compareSequences(one: number, other: number): number {
  return ((one - other + 1.5 * SEQUENCES) % SEQUENCES) - SEQUENCES / 2
}

/** As the server writes them. */
function formatSequence(sequence: number): string {
  const digits = String(Math.abs(sequence)).padStart(sequence < 0 ? 9 : 10, '0')
  return sequence < 0 ? `-${digits}` : digits
}

/** The first fence of a transaction. */
export function fenceOf(zxid: bigint): number {
  const fence = Number(zxid) * FENCES_EACH
  if (fence + FENCES_EACH <= HIGHEST_FENCE) return fence
  throw new HoldfastError(
    'UNSUPPORTED',
    'The ensemble has elected more than 32 thousand leaders, so its transactions no longer fit a fence; set up a new ensemble',
    { store: 'zookeeper' },
  )
}

/** The last fence of a transaction. */
export function lastFenceOf(zxid: bigint): number {
  return fenceOf(zxid) + FENCES_EACH - 1
}

/** Refuses a block of fences that one transaction does not have. */
export function checkBlock(fences: number): void {
  if (fences <= FENCES_EACH) return
  throw new HoldfastError(
    'UNSUPPORTED',
    `A hold in ZooKeeper can reserve ${FENCES_EACH} fences, not ${fences}; release it and acquire again`,
    { store: 'zookeeper' },
  )
}
