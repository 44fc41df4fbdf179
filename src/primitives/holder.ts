import { formatMs } from '../base/duration.js'
import type { Env } from '../base/env.js'
import { HoldfastError } from '../base/errors.js'
import { acquireTimeout } from '../calls/limits.js'
import type { LockContext } from './reentry.js'
import { type WaiterView, waiterView } from './views.js'

export function isAcquireTimeout(error: unknown): error is HoldfastError {
  return error instanceof HoldfastError && error.code === 'ACQUIRE_TIMEOUT'
}

/** Describes the holder for people; undefined if one quick look cannot tell. */
export async function holderOf(
  { engine: { env }, operator }: LockContext,
  resource: string,
): Promise<string | undefined> {
  const line = await operator.glance(resource)
  // Not of the waiters: where many time out, each would look at all of them.
  const [first, ...others] = line?.claims.filter(({ fence }) => fence !== null) ?? []
  if (!first) return undefined
  const also = others.length === 0 ? '' : ` and ${others.length} more`
  return `${describe(waiterView(first, env), env)}${also}`
}

/** The error for a caller whose wait is over. */
export async function timeoutWithHolder(
  context: LockContext,
  resource: string,
  waitMs: number,
): Promise<HoldfastError> {
  return acquireTimeout(resource, waitMs, await holderOf(context, resource))
}

function describe({ host, pid, label, since }: WaiterView, env: Env): string {
  const who = [host, pid === 0 ? '' : `pid ${pid}`, label === null ? '' : `'${label}'`].filter(
    (part) => part !== '',
  )
  const heldMs = Math.max(0, env.wallMs() - since.getTime())
  return `${who.join(', ') || 'another program'} for ${formatMs(heldMs)}`
}
