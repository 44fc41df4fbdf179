import { invalid } from '../base/errors.js'
import type { Lease } from '../engine/lease.js'

/** The content of an exported hold. */
export interface Exported {
  readonly space: string
  readonly resource: string
  readonly id: string
  readonly fence: number
  readonly permits: number
  readonly capacity: number
  readonly leaseMs: number
  readonly maxHoldMs: number | null
}

const PREFIX = 'holdfast1.'

export function encodeExported(space: string, lease: Lease): string {
  const { resource, capacity, leaseMs, maxHoldMs } = lease.spec
  const exported: Exported = {
    space,
    resource,
    id: lease.id,
    fence: lease.grant,
    permits: lease.permits,
    capacity,
    leaseMs,
    maxHoldMs,
  }
  return PREFIX + Buffer.from(JSON.stringify(exported)).toString('base64url')
}

export function decodeExported(text: unknown): Exported {
  if (typeof text !== 'string' || !text.startsWith(PREFIX))
    throw invalid('adopt() takes the text that hold.export() gave')
  try {
    const exported: unknown = JSON.parse(Buffer.from(text.slice(PREFIX.length), 'base64url').toString())
    if (isExported(exported)) return exported
  } catch {
    // Not JSON: refused below.
  }
  throw invalid('The text for adopt() is damaged; use exactly what hold.export() gave')
}

function isExported(value: unknown): value is Exported {
  if (typeof value !== 'object' || value === null) return false
  const { space, resource, id, fence, permits, capacity, leaseMs, maxHoldMs } = value as Record<
    keyof Exported,
    unknown
  >
  const areTexts = [space, resource, id].every((text) => typeof text === 'string' && text !== '')
  const areCounts = [fence, permits, capacity].every(
    (count) => Number.isSafeInteger(count) && (count as number) > 0,
  )
  const areDurations = [leaseMs, maxHoldMs ?? 1].every((ms) => typeof ms === 'number' && ms > 0)
  return areTexts && areCounts && areDurations
}
