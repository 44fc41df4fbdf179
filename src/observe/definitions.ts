import type { HoldEnd } from '../base/events.js'

/** One metric: what it is called, and what it counts. */
export interface Definition {
  /** Its name in OpenTelemetry. */
  readonly name: string
  /** Its name in Prometheus, which is what an OpenTelemetry collector makes of the other one. */
  readonly prometheus: string
  readonly type: 'histogram' | 'gauge' | 'counter'
  /** In seconds, or a number of these. */
  readonly unit: string
  readonly help: string
}

export const WAIT: Definition = {
  name: 'holdfast.wait.duration',
  prometheus: 'holdfast_wait_duration_seconds',
  type: 'histogram',
  unit: 's',
  help: 'How long requests for a lock took, until they were granted or gave up',
}

export const HOLD: Definition = {
  name: 'holdfast.hold.duration',
  prometheus: 'holdfast_hold_duration_seconds',
  type: 'histogram',
  unit: 's',
  help: 'How long locks were held',
}

export const WAITING: Definition = {
  name: 'holdfast.waiting',
  prometheus: 'holdfast_waiting',
  type: 'gauge',
  unit: '{request}',
  help: 'Requests of this process that are not answered yet',
}

export const HELD: Definition = {
  name: 'holdfast.held',
  prometheus: 'holdfast_held',
  type: 'gauge',
  unit: '{hold}',
  help: 'Holds of this process',
}

export const TIMEOUTS: Definition = {
  name: 'holdfast.timeouts',
  prometheus: 'holdfast_timeouts_total',
  type: 'counter',
  unit: '{request}',
  help: 'Requests whose wait was over before they were granted',
}

export const LOST: Definition = {
  name: 'holdfast.lost',
  prometheus: 'holdfast_lost_total',
  type: 'counter',
  unit: '{hold}',
  help: 'Holds that ended without a release',
}

export const STALE_FENCES: Definition = {
  name: 'holdfast.stale_fences',
  prometheus: 'holdfast_stale_fences_total',
  type: 'counter',
  unit: '{write}',
  help: 'Writes that a guard refused because of a stale fence',
}

export const STORE_ERRORS: Definition = {
  name: 'holdfast.store.errors',
  prometheus: 'holdfast_store_errors_total',
  type: 'counter',
  unit: '{call}',
  help: 'Calls to the store that failed, or were not answered in time',
}

/** In seconds: from a round trip on the same machine to a hold of hours. */
export const DEFAULT_BUCKETS: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600,
]

const IS_LOSS: Readonly<Record<HoldEnd, boolean>> = {
  released: false,
  'handed-over': false,
  lost: true,
  expired: true,
  closed: true,
  forgotten: true,
}

/** Whether a hold ended without a release. A hold that was handed over goes on elsewhere. */
export function isLoss(outcome: HoldEnd): boolean {
  return IS_LOSS[outcome]
}

/** The outcomes of holds that ended without a release. */
export const LOSSES: readonly HoldEnd[] = (Object.keys(IS_LOSS) as HoldEnd[]).filter(isLoss)
