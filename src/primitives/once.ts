import { type Duration, toMs } from '../base/duration.js'
import { invalid } from '../base/errors.js'
import { checkName } from '../base/names.js'
import { checkOptions, type OptionNames } from '../base/options.js'
import { EXCLUSIVE } from '../contract/constants.js'
import type { Hold } from './hold.js'
import { type HoldOptions, LONGEST_LABEL } from './options.js'
import { enter, type LockContext, leave } from './reentry.js'
import { runInside } from './run.js'

/** The options of `once`. */
export interface OnceOptions {
  /**
   * How long after its start no process starts it again, however fast it was and even if it failed.
   * Make it longer than clocks differ, and shorter than the time between two ticks.
   */
  atLeast: Duration
  /**
   * The longest time that the work may take. Then its hold is lost, its signal aborts, and another
   * process may start.
   */
  atMost: Duration
  /**
   * How long the others are kept out after the process that does the work dies. Default `'30s'`, at
   * most `atMost`.
   */
  lease?: Duration | undefined
  /** A note for people, shown by `holdfast ls` and `inspect()`. */
  label?: string | undefined
}

/** The outcome of a tick. */
export type OnceOutcome<T> =
  | {
      /** It ran here. */
      readonly ran: true
      /** The value that the work returned. */
      readonly value: T
    }
  | {
      /** Another process does it now, or has started it less than `atLeast` ago. */
      readonly ran: false
    }

const ONCE_OPTIONS: OptionNames<OnceOptions> = { atLeast: true, atMost: true, lease: true, label: true }
const DEFAULT_LEASE_MS = 30_000

/** Runs the work unless another process does so now, or has started it less than `atLeast` ago. */
export async function once<T>(
  context: LockContext,
  name: string,
  options: OnceOptions,
  work: (hold: Hold) => T | PromiseLike<T>,
): Promise<OnceOutcome<T>> {
  const key = checkName(`once:${checkName(name, 'The name for once()')}`, 'The name for once()')
  const { atLeastMs, hold } = readOnceOptions(options, name)
  if (typeof work !== 'function') throw invalid('once() takes a function as its last argument', name)
  const kind = {
    resource: key,
    permits: EXCLUSIVE,
    capacity: EXCLUSIVE,
    isReentrant: false,
    primitive: 'once',
  } as const
  const entry = await enter(context, kind, hold, { waitMs: 0, signal: undefined })
  if (!entry) return { ran: false }
  const fence = entry.request.fence
  const isFirst = await start(context, key, fence, atLeastMs).catch(async (error) => {
    await leave(context.engine, entry)
    throw error
  })
  const { request } = entry
  const isHeld = context.engine.checkValidity(request)
  if (!isFirst || !isHeld) {
    await leave(context.engine, entry)
    // It counts as started, and another process may be doing it already.
    if (isFirst) throw request.lostBecause
    return { ran: false }
  }
  const inside = ([only]: readonly Hold[]): T | PromiseLike<T> => work(only as Hold)
  return {
    ran: true,
    value: await runInside(context, { entries: [entry], work: inside, areOrdered: false }),
  }
}

/**
 * Records the start before the work begins: a run that dies is not repeated within `atLeast`
 * either.
 */
async function start(context: LockContext, key: string, fence: number, atLeastMs: number): Promise<boolean> {
  const { env, states } = context.engine
  const began = env.wallMs()
  // The fence tells whose it is; the times are for people.
  const mine = JSON.stringify({ fence, began, keptUntil: began + atLeastMs })
  const after = await states.update(key, (value) =>
    value === null ? { value: mine, retentionMs: atLeastMs } : null,
  )
  return after === mine
}

/** Refuses wrong options, where they are given and not only at the first tick. */
export function readOnceOptions(
  options: OnceOptions,
  name: string,
): { atLeastMs: number; hold: HoldOptions } {
  const { atLeast, atMost, lease, label } = checkOptions(
    options,
    ONCE_OPTIONS,
    "{ atLeast: '1m', atMost: '1h' }",
  )
  const atLeastMs = toMs(atLeast, { name: 'atLeast', minMs: 1 })
  const maxHold = toMs(atMost, { name: 'atMost', minMs: 10 })
  const leaseMs = lease === undefined ? DEFAULT_LEASE_MS : toMs(lease, { name: 'lease', minMs: 10 })
  const note = label ?? name.slice(0, LONGEST_LABEL)
  return { atLeastMs, hold: { lease: Math.min(leaseMs, maxHold), maxHold, label: note } }
}
