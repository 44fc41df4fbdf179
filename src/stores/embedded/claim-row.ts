import type { ClaimRequest, ClaimView, Granted } from '../../contract/store.js'
import type { ClaimRow } from './rows.js'

export type HeldRow = ClaimRow & { readonly fence: number }

export function newRow<F extends number | null>(
  client: string,
  request: ClaimRequest,
  now: number,
  fence: F,
  expires: number,
): ClaimRow & { readonly fence: F } {
  return {
    resource: request.resource,
    id: request.id,
    client,
    permits: request.permits,
    capacity: request.capacity,
    fence,
    expires,
    maxHoldMs: request.maxHoldMs,
    floor: request.floor,
    block: request.block,
    since: now,
    info: request.info,
  }
}

export function granted({ fence, expires }: HeldRow, now: number, isWanted: boolean): Granted {
  return { status: 'granted', fence, leaseMs: expires - now, isWanted }
}

export function isHeld(row: ClaimRow): row is HeldRow {
  return row.fence !== null
}

export function viewOf({ id, permits, fence, info, since, expires }: ClaimRow, now: number): ClaimView {
  return { id, permits, fence, info, ageMs: now - since, expiresInMs: expires - now }
}

/** The latest moment at which a hold that was granted at `since` may end. */
export function latestEnd({ maxHoldMs }: ClaimRow, since: number): number {
  return maxHoldMs === null ? Infinity : since + maxHoldMs
}
