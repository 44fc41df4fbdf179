import { checkSignal } from '../base/abort.js'
import { type Duration, toMs } from '../base/duration.js'
import { HoldfastError, invalid } from '../base/errors.js'
import type { Primitive } from '../base/events.js'
import { checkOptions, type OptionNames } from '../base/options.js'
import type { Limits } from '../calls/limits.js'
import type { Engine } from '../engine/engine.js'
import type { RequestSpec } from '../engine/spec.js'
import { LONGEST_TURN_MS } from '../engine/turn.js'

/**
 * The options of every acquisition. Durations are milliseconds, or strings such as `'500ms'`,
 * `'30s'`, `'5m'`.
 */
export interface HoldOptions {
  /**
   * How long the hold lasts without a renewal: after a crash, the next in line gets the lock this
   * much later. Holdfast renews it at a third of this time while the process lives. Default
   * `'30s'`; the client can set another default for locks.
   */
  lease?: Duration | undefined
  /**
   * The longest time that the hold may last, renewals included; then it is lost. Default:
   * `Infinity`, no cap; the client can set another default for locks.
   */
  maxHold?: Duration | undefined
  /**
   * The owner of the hold. The same owner may enter again within the same client. In another client
   * the same owner is just another waiter. Default: each acquisition is its own owner.
   */
  owner?: string | undefined
  /** A note for people, shown by `inspect()`: `'nightly report'`. */
  label?: string | undefined
}

/** The options of `acquire` and `run`: how to hold, and how long to wait. */
export interface AcquireOptions extends HoldOptions {
  /**
   * How long to wait in line. `0` does not wait. Default: forever; the client can set another
   * default for locks.
   */
  wait?: Duration | undefined
  /**
   * The most that may wait: a request that would have to wait behind so many fails at once, with
   * LINE_FULL. Counts the places in the store's line, and the callers that share one place.
   * Default: `Infinity`, no bound; the client can set another default. See
   * `docs/bounded-lines.md`.
   */
  maxWaiters?: number | undefined
  /** Ends the wait with ABORTED when aborted. It has no effect once you hold the lock. */
  signal?: AbortSignal | undefined
}

/** The client's defaults for its locks. */
export type LockDefaults = Pick<AcquireOptions, 'wait' | 'lease' | 'maxHold' | 'maxWaiters'>

/** The options of `tryAcquire`, which never waits. */
export interface TryOptions extends HoldOptions {
  /** An aborted signal stops the attempt with ABORTED. */
  signal?: AbortSignal | undefined
}

/**
 * The order in which waiters are served. `'cohort'`: each process in the order of arrival, and the
 * processes by turns, so that waiters in one process pass on a hot lock without asking the store.
 * `'strict'`: all waiters in the order of arrival.
 */
export type LockOrder = 'cohort' | 'strict'

/** The options of a mutex or a read-write lock. */
export interface LockOptions {
  /**
   * `'cohort'`: waiters in one process pass the lock on among themselves, for a bounded time while
   * others wait. `'strict'`: all waiters are served in the order of arrival, in whichever process
   * they are. Each has its own place in the store's line. Default: the `order` of the client, which
   * is `'cohort'` unless you set it.
   */
  order?: LockOrder | undefined
  /**
   * Keeps the lock for this long after its last hold in this process, so that the next one here
   * costs no round trip. When another process begins to wait, the lock goes back at once. Default:
   * 0, it goes back with the last hold. See `docs/lingering.md`.
   */
  linger?: Duration | undefined
}

export const HOLD_OPTIONS: OptionNames<HoldOptions> = { lease: true, maxHold: true, owner: true, label: true }
const ACQUIRE_OPTIONS: OptionNames<AcquireOptions> = {
  wait: true,
  maxWaiters: true,
  signal: true,
  ...HOLD_OPTIONS,
}
const TRY_OPTIONS: OptionNames<TryOptions> = { signal: true, ...HOLD_OPTIONS }
/** The option names of each call. */
export const CALL_OPTIONS = { acquire: ACQUIRE_OPTIONS, tryAcquire: TRY_OPTIONS }
const LOCK_OPTIONS: OptionNames<LockOptions> = { order: true, linger: true }

const DEFAULT_LEASE_MS = 30_000
const SHORTEST_LEASE_MS = 10
const SHORTEST_HOLD_MS = 10
/** A waiter's presence is as long as its lease, but a dead waiter must not block for longer. */
const LONGEST_PRESENCE_MS = 30_000
export const LONGEST_LABEL = 1000
const PASS_ON = { cohort: 'neighbours', strict: 'heirs', none: 'nobody' } as const

/** What a primitive asks the store for with every call. */
export interface LockKind {
  readonly resource: string
  readonly permits: number
  readonly capacity: number
  /** Whether the same flow or owner may enter again without asking the store. */
  readonly isReentrant: boolean
  /** Revokes the present holders. */
  readonly steal?: true
  /** Revoked as soon as the client closes, without a drain. */
  readonly endsAtClose?: true
  /** How it is passed on inside a process. Omitted: it is not. */
  readonly order?: LockOrder
  /** How long it lingers after the last local hold. Omitted: not at all. */
  readonly lingerMs?: number
  /** For events. Omitted: a mutex, a reader or a semaphore, by its permits. */
  readonly primitive?: Primitive
}

export function requestSpec(kind: LockKind, options: HoldOptions, presenceMs: number | null): RequestSpec {
  const { resource, permits, capacity, lingerMs = 0 } = kind
  const leaseMs =
    options.lease === undefined
      ? DEFAULT_LEASE_MS
      : toMs(options.lease, { name: 'lease', minMs: SHORTEST_LEASE_MS })
  const maxHoldMs = toMaxHoldMs(options.maxHold)
  return {
    resource,
    permits,
    capacity,
    ...(kind.steal ? { mode: 'steal' as const } : {}),
    endsAtClose: kind.endsAtClose === true,
    primitive: kind.primitive,
    // The store counts maxHold from the grant: a hold that inherits it would get less.
    passOn: maxHoldMs === null ? PASS_ON[kind.order ?? 'none'] : 'nobody',
    lingerMs: maxHoldMs === null ? lingerMs : 0,
    leaseMs,
    presenceMs: presenceMs ?? Math.min(leaseMs, LONGEST_PRESENCE_MS),
    maxHoldMs,
    owner: checkText(options.owner, 'owner'),
    label: checkText(options.label, 'label'),
  }
}

/** null: no cap. */
function toMaxHoldMs(maxHold: Duration | undefined): number | null {
  if (maxHold === undefined) return null
  const ms = toMs(maxHold, { name: 'maxHold', minMs: SHORTEST_HOLD_MS, infinite: true })
  return ms === Infinity ? null : ms
}

/** The wait limits in the options of a call, after a check against the allowed `names`. */
export function limits<T extends Pick<AcquireOptions, 'wait' | 'maxWaiters' | 'signal'>>(
  options: T,
  names: OptionNames<NoInfer<T>>,
  { wait: defaultWait, maxWaiters: defaultMost }: LockDefaults = {},
): Limits {
  checkOptions(options, names, "{ wait: '5s' }")
  // Not `??`: null is not a duration, and is refused.
  const wait = options.wait === undefined ? defaultWait : options.wait
  const waitMs = wait === undefined ? Infinity : toMs(wait, { name: 'wait', infinite: true })
  const signal = checkSignal(options.signal)
  const most = options.maxWaiters === undefined ? defaultMost : options.maxWaiters
  if (most === undefined) return { waitMs, signal }
  const maxWaiters = checkMaxWaiters(most)
  return maxWaiters === Infinity ? { waitMs, signal } : { waitMs, signal, maxWaiters }
}

/** Infinity: no bound. */
function checkMaxWaiters(most: unknown): number {
  if (most === Infinity || (Number.isSafeInteger(most) && (most as number) >= 1)) return most as number
  throw invalid('maxWaiters must be a whole number of at least 1, or Infinity')
}

/** The options of one call, completed with the client's defaults. */
export function withDefaults<T extends HoldOptions>(options: T, { lease, maxHold }: LockDefaults): T {
  if (lease === undefined && maxHold === undefined) return options
  return {
    ...options,
    lease: options.lease === undefined ? lease : options.lease,
    maxHold: options.maxHold === undefined ? maxHold : options.maxHold,
  }
}

/** Refuses defaults that no lock could use. */
export function checkDefaults({ wait, lease, maxHold, maxWaiters }: LockDefaults): LockDefaults {
  limits({ wait, maxWaiters }, { wait: true, maxWaiters: true })
  requestSpec({ resource: '', permits: 1, capacity: 1, isReentrant: false }, { lease, maxHold }, null)
  return { wait, lease, maxHold, maxWaiters }
}

export function lockOptions(
  options: LockOptions,
  context: { readonly order: LockOrder; readonly engine: Engine },
): { order: LockOrder; lingerMs: number } {
  const { order: ownOrder, linger } = checkOptions(options, LOCK_OPTIONS, "{ order: 'strict' }")
  const order = checkOrder(ownOrder) ?? context.order
  const lingerMs = linger === undefined ? 0 : toMs(linger, { name: 'linger' })
  if (lingerMs > 0) checkLinger(lingerMs, order, context.engine)
  return { order, lingerMs }
}

/** A store that cannot tell that others wait would let a lingering lock block them all the time. */
function checkLinger(lingerMs: number, order: LockOrder, { capabilities, storeName }: Engine): void {
  if (order === 'strict')
    throw invalid(
      "linger needs order: 'cohort': with 'strict' a lock goes to the next waiter in line, in any process",
    )
  if (capabilities.tellsWanted !== undefined || lingerMs <= LONGEST_TURN_MS) return
  const message = `The ${storeName} store cannot tell that others wait, so linger can be at most ${LONGEST_TURN_MS}ms there; use a store that pushes, such as Redis or PostgreSQL`
  throw new HoldfastError('UNSUPPORTED', message, { store: storeName })
}

/** Refuses a semaphore or barrier where the store has only locks. */
export function checkCounting({ capabilities, storeName }: Engine, resource: string): void {
  if (capabilities.countsPermits !== false) return
  const message = `The ${storeName} store has no semaphores and barriers, because a majority of its members does not bound a count; use one of the members for '${resource}', or several mutexes`
  throw new HoldfastError('UNSUPPORTED', message, { store: storeName, resource })
}

export function checkOrder(order: unknown): LockOrder | undefined {
  if (order === undefined || order === 'cohort' || order === 'strict') return order
  throw invalid("order must be 'cohort' or 'strict'")
}

function checkText(text: unknown, name: string): string | null {
  if (text === undefined) return null
  if (typeof text !== 'string' || text === '') throw invalid(`${name} must be a non-empty string`)
  if (text.length > LONGEST_LABEL)
    throw invalid(`${name} has ${text.length} characters, more than ${LONGEST_LABEL}; shorten it`)
  return text
}
