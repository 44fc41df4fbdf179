import { HoldfastError } from '../../base/errors.js'
import { EXCLUSIVE } from '../../contract/constants.js'
import { checkFences } from '../../contract/fence.js'
import type { KeyValue } from '../../drivers/etcd/index.js'

/** The value of a claim's key. */
export interface ClaimValue {
  readonly id: string
  /** Tells the claims apart that had the same key, or the same id, one after the other. */
  readonly attempt: string
  readonly permits: number
  readonly capacity: number
  readonly info: string
  /** The length of its client's lease, for people. */
  readonly ttlMs: number
  /** The wall clock of its client when it came, for people. */
  readonly since: number
  /** Its first fence is so many after the first one of its revision. */
  readonly offset?: number
  /** Where the key was written again since it got its fence. */
  readonly fence?: number
  /** Its fence is that of the key's last change. */
  readonly isLate?: true
}

/** A claim as its key shows it. */
export interface EtcdRow {
  readonly key: string
  readonly createRevision: number
  readonly modRevision: number
  readonly value: ClaimValue
  /** false: the key of other software, such as `etcdctl lock`. */
  readonly isOwn: boolean
}

/** How many fences belong to one revision, for blocks. */
export const FENCES_EACH = 1024

export function fenceOf({ createRevision, modRevision, value }: EtcdRow): number {
  if (value.fence !== undefined) return value.fence
  return firstFence(value.isLate ? modRevision : createRevision) + (value.offset ?? 0)
}

export function firstFence(revision: number): number {
  checkFences(revision * FENCES_EACH, FENCES_EACH)
  return revision * FENCES_EACH
}

export function lastFence(revision: number): number {
  return firstFence(revision) + FENCES_EACH - 1
}

export function rowOf({ key, createRevision, modRevision, value }: KeyValue): EtcdRow {
  const own = parse(String(value))
  const foreign = {
    id: key.slice(key.lastIndexOf('/') + 1),
    attempt: '',
    permits: EXCLUSIVE,
    capacity: EXCLUSIVE,
    info: '',
    ttlMs: 0,
    since: 0,
  }
  return { key, createRevision, modRevision, value: own ?? foreign, isOwn: own !== null }
}

function parse(text: string): ClaimValue | null {
  if (!text.startsWith('{"id":')) return null
  try {
    const value = JSON.parse(text)
    return Number.isSafeInteger(value.permits) && Number.isSafeInteger(value.capacity) ? value : null
  } catch {
    return null
  }
}

/** The order of the line. Claims that one client made in one transaction have the same revision. */
export function compareRows(one: EtcdRow, other: EtcdRow): number {
  if (one.key === other.key) return 0
  return (
    one.createRevision - other.createRevision ||
    (one.value.offset ?? 0) - (other.value.offset ?? 0) ||
    (one.key < other.key ? -1 : 1)
  )
}

export function checkBlock(block: number): void {
  if (block <= FENCES_EACH) return
  throw new HoldfastError('UNSUPPORTED', `A block has at most ${FENCES_EACH} fences, not ${block}`, {
    store: 'etcd',
  })
}
