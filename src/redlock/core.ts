import { systemEnv } from '../base/env.js'
import { HoldfastError } from '../base/errors.js'
import { Holdfast } from '../primitives/holdfast.js'
import { MultiHold } from '../primitives/multi-hold.js'
import type { RedisClient } from '../stores/redis/index.js'
import { quitAll, storeOf } from './clients.js'
import { HeldResources, usableMs } from './held.js'
import { type HoldfastSettings, longestWaitMs, type Settings } from './settings.js'

const env = systemEnv

/** What the APIs of version 4 and 5 have in common: locks by duration, on Holdfast. */
export class Core {
  readonly locks: Holdfast
  readonly #clients: ReadonlySet<RedisClient>

  constructor(clients: ReadonlySet<RedisClient>, settings: HoldfastSettings) {
    const { space, storeTimeout, longestDuration } = settings
    this.#clients = clients
    this.locks = new Holdfast(storeOf(clients, longestDuration), { space, storeTimeout })
  }

  /** Waits in line as long as the settings say. The lock is renewed, until it is let lapse. */
  async acquire(
    resources: readonly string[],
    durationMs: number,
    settings: Settings,
  ): Promise<HeldResources> {
    const hold = await this.#acquire(resources, durationMs, longestWaitMs(settings))
    const held = new HeldResources(env, hold)
    try {
      await held.fill(durationMs)
      return held
    } catch (error) {
      await held.release().catch(() => 0)
      throw error
    }
  }

  async #acquire(resources: readonly string[], durationMs: number, waitMs: number): Promise<MultiHold> {
    // redlock takes no resources for a lock that is always free.
    if (resources.length === 0) return new MultiHold([])
    const lock = this.locks.all(resources)
    if (waitMs > 0) return lock.acquire({ lease: durationMs, wait: waitMs })
    const hold = await lock.tryAcquire({ lease: durationMs })
    if (hold) return hold
    throw new HoldfastError('ACQUIRE_TIMEOUT', `Not all of ${resources.map((name) => `'${name}'`)} are free`)
  }

  /** A new value for a lock, as redlock makes them. */
  newValue(): string {
    return env.id().replaceAll('-', '')
  }

  /** Until when a lock may be relied upon that was just granted or extended, by the wall clock. */
  expirationOf(held: HeldResources, durationMs: number, { driftFactor }: Settings): number {
    const ownDriftMs = Math.round(driftFactor * durationMs) + 2
    const leftMs = Math.min(held.remainingMs, usableMs(durationMs), durationMs - ownDriftMs)
    return Math.floor(env.wallMs() + leftMs)
  }

  isExpired({ expiration }: { readonly expiration: number }): boolean {
    return expiration < env.wallMs()
  }

  /** Ends the connections. What is held stays held until its time is over, as with redlock. */
  async quit(): Promise<unknown[]> {
    const { engine } = Holdfast.contextOf(this.locks)
    for (const lease of engine.leases.values()) if (lease.phase === 'held') lease.isLeftToLapse = true
    await this.locks.close({ drain: 0 })
    return quitAll(this.#clients)
  }
}

/** Whether the resource is held by another lock, or no longer by this one. */
export function isLocked(error: unknown): boolean {
  return isCode(error, ['ACQUIRE_TIMEOUT', 'HOLD_LOST', 'NOT_HELD'])
}

/** Whether the servers could not be asked. All other errors are mistakes of the caller. */
export function isUnanswered(error: unknown): error is HoldfastError {
  return isCode(error, ['STORE_UNAVAILABLE', 'CLOSED'])
}

function isCode(error: unknown, codes: readonly string[]): boolean {
  return error instanceof HoldfastError && codes.includes(error.code)
}
