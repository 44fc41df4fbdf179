import { checkSignal } from '../base/abort.js'
import { type Duration, toMs } from '../base/duration.js'
import { HoldfastError, invalid } from '../base/errors.js'
import { checkOptions, type OptionNames } from '../base/options.js'
import type { Engine } from '../engine/engine.js'
import type { Limits } from '../engine/limits.js'
import type { RequestSpec } from '../engine/spec.js'
import { LONGEST_TURN_MS } from '../engine/turn.js'

/** What every acquisition can be told. Durations are milliseconds or strings such as `'500ms'`, `'30s'`, `'5m'`. */
export interface HoldOptions {
  /**
   * How long the hold lives when its holder falls silent: after a crash, the next in line gets the lock this much later.
   * Renewed automatically at a third of it for as long as the process lives. Default `'30s'`.
   */
  lease?: Duration | undefined
  /** The longest that the hold may last in all, renewals included; then it is lost. Default: no cap, as `Infinity` says. */
  maxHold?: Duration | undefined
  /**
   * Who holds. The same owner may enter again within the same client; another client with the same owner is just another
   * claimant. Default: the acquisition itself.
   */
  owner?: string | undefined
  /** For people who look at the line: `'nightly report'`. */
  label?: string | undefined
}

/** What `acquire` and `run` can be told: how to hold, and how long to wait for it. */
export interface AcquireOptions extends HoldOptions {
  /** How long to wait in line. Default: for ever. `0` does not wait at all. */
  wait?: Duration | undefined
  /** Gives up waiting when aborted, with ABORTED. Has no effect once the lock is held. */
  signal?: AbortSignal | undefined
}

/** What a client says for all its locks, where a call says nothing else. */
export type LockDefaults = Pick<AcquireOptions, 'wait' | 'lease' | 'maxHold'>

/** What `tryAcquire` can be told: it never waits. */
export interface TryOptions extends HoldOptions {
  /** An aborted signal stops the attempt with ABORTED. */
  signal?: AbortSignal | undefined
}

/**
 * In which order those who wait are served: `'cohort'`, each process in the order of arrival, and the processes by turns, which
 * lets neighbours in one process pass a hot lock on without asking the store; or `'strict'`, everybody in the order of arrival.
 */
export type LockOrder = 'cohort' | 'strict'

/** What a mutex or a read-write lock can be told. */
export interface LockOptions {
  /**
   * `'cohort'`: neighbours in one process pass the lock on among themselves, for a bounded time where others wait. `'strict'`: everybody is
   * served in the order of arrival, whichever process it is in; each stands in the store's line by itself. Default: as the client says, which is
   * `'cohort'` if nothing else was said.
   */
  order?: LockOrder | undefined
  /**
   * Keeps the lock for this long after its last hold in this process has gone, so that the next one here costs no round trip. When
   * another process begins to wait, it goes back at once. Default: 0, it goes back with the last hold. See `docs/lingering.md`.
   */
  linger?: Duration | undefined
}

export const HOLD_OPTIONS: OptionNames<HoldOptions> = { lease: true, maxHold: true, owner: true, label: true }
const ACQUIRE_OPTIONS: OptionNames<AcquireOptions> = { wait: true, signal: true, ...HOLD_OPTIONS }
const TRY_OPTIONS: OptionNames<TryOptions> = { signal: true, ...HOLD_OPTIONS }
/** What a lock can be told each time: to be waited for, and to be tried. */
export const EACH_TIME = { acquire: ACQUIRE_OPTIONS, tryAcquire: TRY_OPTIONS }
const LOCK_OPTIONS: OptionNames<LockOptions> = { order: true, linger: true }

const DEFAULT_LEASE_MS = 30_000
const SHORTEST_LEASE_MS = 10
const SHORTEST_HOLD_MS = 10
/** A place in line is kept as long as the lease, but a dead waiter shall not bar the line for longer than this. */
const LONGEST_PRESENCE_MS = 30_000
const LONGEST_LABEL = 1000
const PASS_ON = { cohort: 'neighbours', strict: 'heirs', none: 'nobody' } as const

/** What a primitive asks for with every call. */
export interface LockKind {
  readonly resource: string
  readonly permits: number
  readonly capacity: number
  /** Whether the same flow or owner enters again without asking the store. */
  readonly isReentrant: boolean
  /** Take it from its holders. */
  readonly steal?: true
  /** Given up as soon as the client closes, and not waited for. */
  readonly endsAtClose?: true
  /** In which order it may be passed on inside a process. Left out: it is not. */
  readonly order?: LockOrder
  /** How long it is kept after the last local hold has gone. Left out: not at all. */
  readonly lingerMs?: number
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
    // The store counts maxHold from the grant: passed on, the next hold would have less of it.
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

/** How long to wait, of options that may say so; `names` are all that they may have. */
export function limits<T extends Pick<AcquireOptions, 'wait' | 'signal'>>(
  options: T,
  names: OptionNames<NoInfer<T>>,
  { wait: defaultWait }: LockDefaults = {},
): Limits {
  checkOptions(options, names, "{ wait: '5s' }")
  // Not `??`: null is no duration, and is refused.
  const wait = options.wait === undefined ? defaultWait : options.wait
  const waitMs = wait === undefined ? Infinity : toMs(wait, { name: 'wait', infinite: true })
  return { waitMs, signal: checkSignal(options.signal) }
}

/** The options of one call, with what the client says for all. */
export function withDefaults<T extends HoldOptions>(options: T, { lease, maxHold }: LockDefaults): T {
  if (lease === undefined && maxHold === undefined) return options
  return {
    ...options,
    lease: options.lease === undefined ? lease : options.lease,
    maxHold: options.maxHold === undefined ? maxHold : options.maxHold,
  }
}

/** Refuses defaults that no lock could be asked with. */
export function checkDefaults({ wait, lease, maxHold }: LockDefaults): LockDefaults {
  limits({ wait }, { wait: true })
  requestSpec({ resource: '', permits: 1, capacity: 1, isReentrant: false }, { lease, maxHold }, null)
  return { wait, lease, maxHold }
}

/** The checked options of a mutex or a read-write lock. */
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

/** Where a store cannot tell that others wait, a lock that is kept would stop them for all of this time. */
function checkLinger(lingerMs: number, order: LockOrder, { capabilities, storeName }: Engine): void {
  if (order === 'strict')
    throw invalid(
      "linger needs order: 'cohort': with 'strict' a lock goes to the next one in line, wherever that is",
    )
  if (capabilities.tellsWanted !== undefined || lingerMs <= LONGEST_TURN_MS) return
  const message = `The ${storeName} store cannot tell that others wait, so linger can be at most ${LONGEST_TURN_MS}ms there; use a store that pushes, such as Redis or PostgreSQL`
  throw new HoldfastError('UNSUPPORTED', message, { store: storeName })
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
