import { nothing } from '../base/nothing.js'
import { type Engine, notHeld } from './engine.js'
import type { Lease } from './lease.js'
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
  // The push that revokes it may come together with its grant.
  if (!lease || !engine.checkValidity(request)) throw request.lostBecause ?? notHeld(request.resource)
  const isFresh = lease.validUntil - engine.env.now() >= lease.spec.leaseMs * 0.9
  if (!isFresh) await renewed(engine, entry, lease)
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

/** Where it cannot be renewed, it is given back: nobody learns its id, and could release it. */
async function renewed(engine: Engine, entry: Entry, lease: Lease): Promise<void> {
  try {
    await engine.renew(entry.request, lease, {})
  } catch (error) {
    Promise.resolve(engine.leave(entry)).catch(nothing)
    throw error
  }
}
