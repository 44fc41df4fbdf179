import type { Engine } from './engine.js'
import type { Entry } from './request.js'

/** What a hold that was handed over is used by. */
export interface HandedOver {
  readonly id: string
  readonly fence: number
  /** How long it lasts without a renewal, from now. */
  readonly leaseMs: number
}

/**
 * Hands a hold over to the users of its id: this client forgets it without a release. A hold that
 * had to wait keeps the deadline of its place in line, so it is renewed first.
 */
export async function handOver(engine: Engine, entry: Entry): Promise<HandedOver> {
  const { request } = entry
  const { lease } = request
  if (!lease) throw request.lostBecause ?? new Error('not held')
  const isFresh = lease.validUntil - engine.env.now() >= lease.spec.leaseMs * 0.9
  if (!isFresh) await engine.renew(request, lease, {})
  const leaseMs = lease.validUntil - engine.env.now()
  const { id, resource } = lease
  lease.isHandedOver = true
  request.leave(entry)
  request.observation?.over('handed-over')
  request.end()
  lease.drop(request)
  lease.end()
  engine.forget(lease)
  engine.connection.letGo?.(resource, id)
  return { id, fence: request.fence, leaseMs }
}
