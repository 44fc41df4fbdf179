import { AsyncLocalStorage } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'

/** Stops a timer; harmless when it has fired already. */
export type Cancel = () => void

/**
 * Time, randomness and timers, through one object, so that a simulation can run the engine for years in seconds.
 * Nothing outside this file asks the machine for any of them, but the SQLite store for a clock that its processes share.
 */
export interface Env {
  /** Monotonic milliseconds, never the wall clock. From when they count is the runtime's affair. */
  now(): number
  /** The wall clock in milliseconds since 1970: for fences and for people, never for a deadline. */
  wallMs(): number
  /** A number from 0 up to, but not including, 1. */
  random(): number
  /** An identifier that no other process makes. */
  id(): string
  /** Calls `run` once after `ms`. With `keepAlive: false` it does not keep the process from ending. */
  timer(ms: number, run: () => void, options: { keepAlive: boolean }): Cancel
}

const LONGEST_TIMEOUT_MS = 2 ** 31 - 1

// Taken when the module loads: timers must not carry the async context of whichever caller happened to start them.
const outsideAnyFlow = AsyncLocalStorage.snapshot()

/** Whether what runs now is outside already. Going out costs about a microsecond, and calls to a store do it within each other. */
let isOutside = false

/** Runs `work` outside the caller's async context, so that what it starts cannot be taken for the caller's flow. */
export function detached<T>(work: () => T): T {
  return isOutside ? work() : outsideAnyFlow(goOut, work)
}

function goOut<T>(work: () => T): T {
  isOutside = true
  try {
    return work()
  } finally {
    isOutside = false
  }
}

function startTimer(ms: number, run: () => void, { keepAlive }: { keepAlive: boolean }): Cancel {
  // setTimeout counts in whole milliseconds from the last tick of its clock, so it can fire up to one early: a wait would end
  // before its time, and a deadline that is reached a moment too soon would be asked for twice.
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
  const handle = isOutside ? setTimeout(run, ms) : outsideAnyFlow(setTimeout, run, ms)
  if (!keepAlive) handle.unref()
  return handle
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
}
