import { AsyncResource } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import { nothing } from './nothing.js'

/** Stops a timer; does nothing if it has fired. */
export type Cancel = () => void

/**
 * Time, timers and randomness in one object, so that a simulation can replace them and run years in
 * seconds. No other file asks the machine for them, except the SQLite store for a shared clock.
 */
export interface Env {
  /** Monotonic milliseconds, never the wall clock. The runtime decides what they count from. */
  now(): number
  /** The wall clock in milliseconds since 1970: for fences and for people, never for deadlines. */
  wallMs(): number
  /** A number from 0 up to, but not including, 1. */
  random(): number
  /** A unique identifier, across processes. */
  id(): string
  /**
   * Calls `run` once after `ms`. With `keepAlive: false` it does not keep the process from ending.
   */
  timer(ms: number, run: () => void, options: { keepAlive: boolean }): Cancel
  /** Keeps the process alive until `letProcessEnd` was called as often. Cheaper than a timer. */
  keepProcess(): void
  letProcessEnd(): void
}

const LONGEST_TIMEOUT_MS = 2 ** 31 - 1

// Made when the module loads: a timer must not run in the async context of the caller that started
// it. Not by AsyncLocalStorage.snapshot(), which takes eight times as long.
const outside = new AsyncResource('Holdfast')

/** Whether the running code is detached already. */
let isDetached = false

/**
 * Runs `work` outside the caller's async context, so that nothing it starts belongs to the caller's
 * flow.
 */
export function detached<T>(work: () => T): T {
  return isDetached ? work() : outside.runInAsyncScope<unknown, T>(runDetached, undefined, work)
}

function runDetached<T>(work: () => T): T {
  isDetached = true
  try {
    return work()
  } finally {
    isDetached = false
  }
}

function startTimer(ms: number, run: () => void, { keepAlive }: { keepAlive: boolean }): Cancel {
  // setTimeout counts whole milliseconds from the last tick of its clock, so it can fire up to one
  // millisecond early. A wait would be too short, and a check at a deadline would run twice.
  const wholeMs = ms > 0 ? Math.ceil(ms) + 1 : 0
  if (wholeMs > LONGEST_TIMEOUT_MS) return startInSteps(wholeMs, run, keepAlive)
  const handle = startTimeout(wholeMs, run, keepAlive)
  return () => clearTimeout(handle)
}

function startInSteps(ms: number, run: () => void, keepAlive: boolean): Cancel {
  let handle: NodeJS.Timeout
  const arm = (leftMs: number): void => {
    const stepMs = Math.min(leftMs, LONGEST_TIMEOUT_MS)
    handle = startTimeout(stepMs, () => (leftMs > stepMs ? arm(leftMs - stepMs) : run()), keepAlive)
  }
  arm(ms)
  return () => clearTimeout(handle)
}

function startTimeout(ms: number, run: () => void, keepAlive: boolean): NodeJS.Timeout {
  const handle = detached(() => setTimeout(run, ms))
  if (!keepAlive) handle.unref()
  return handle
}

let processHolds = 0
let processHold: NodeJS.Timeout | undefined

function keepProcess(): void {
  if (processHolds++ > 0) return
  processHold ??= detached(() => setInterval(nothing, LONGEST_TIMEOUT_MS))
  processHold.ref()
}

function letProcessEnd(): void {
  if (--processHolds === 0) processHold?.unref()
}

/** The real machine. */
export const systemEnv: Env = {
  now() {
    const [seconds, nanoseconds] = process.hrtime()
    return seconds * 1000 + nanoseconds / 1e6
  },
  wallMs: () => Date.now(),
  random: () => Math.random(),
  id: () => randomUUID(),
  timer: startTimer,
  keepProcess,
  letProcessEnd,
}
