import { invalid } from '../base/errors.js'
import type { Claim } from './claim.js'

/** What travels when a hold is passed to another process. */
export interface Passed {
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

export function encodePassed(space: string, claim: Claim): string {
  const { resource, capacity, leaseMs, maxHoldMs } = claim.spec
  const passed: Passed = {
    space,
    resource,
    id: claim.id,
    fence: claim.grant,
    permits: claim.permits,
    capacity,
    leaseMs,
    maxHoldMs,
  }
  return PREFIX + Buffer.from(JSON.stringify(passed)).toString('base64url')
}

export function decodePassed(text: unknown): Passed {
  if (typeof text !== 'string' || !text.startsWith(PREFIX))
    throw invalid('adopt() takes the text that hold.export() gave')
  try {
    const passed: unknown = JSON.parse(Buffer.from(text.slice(PREFIX.length), 'base64url').toString())
    if (isPassed(passed)) return passed
  } catch {
    // Not JSON: told below like everything else that is no passed hold.
  }
  throw invalid('The text for adopt() is damaged; pass on exactly what hold.export() gave')
}

function isPassed(value: unknown): value is Passed {
  if (typeof value !== 'object' || value === null) return false
  const { space, resource, id, fence, permits, capacity, leaseMs, maxHoldMs } = value as Record<
    keyof Passed,
    unknown
  >
  const areTexts = [space, resource, id].every((text) => typeof text === 'string' && text !== '')
  const areCounts = [fence, permits, capacity].every(
    (count) => Number.isSafeInteger(count) && (count as number) > 0,
  )
  const areDurations = [leaseMs, maxHoldMs ?? 1].every((ms) => typeof ms === 'number' && ms > 0)
  return areTexts && areCounts && areDurations
}
