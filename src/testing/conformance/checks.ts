import assert from 'node:assert/strict'
import { type Cancel, type Env, systemEnv } from '../../base/env.js'
import { type ErrorCode, HoldfastError } from '../../base/errors.js'
import { now } from '../clock.js'

export { now }

/**
 * How long to wait for what must happen: far more than it takes, so that a loaded machine does not
 * fail the suite.
 */
export const PATIENCE_MS = 30_000

/**
 * Lets time pass: to show that something does not happen, or for a deadline that is the subject.
 * Never to wait for an event.
 */
export function pass(ms: number): Promise<void> {
  return new Promise((resolve) => {
    systemEnv.timer(ms, resolve, { keepAlive: true })
  })
}

/**
 * As if the process had been stopped: no timer and no message comes through meanwhile. For cases
 * that run alone.
 */
export function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/**
 * Resolves as soon as the condition holds; fails, saying what was waited for, when patience is
 * over.
 */
export async function eventually(
  what: string,
  condition: () => boolean | Promise<boolean>,
  limitMs = PATIENCE_MS,
): Promise<void> {
  const deadline = now() + limitMs
  while (!(await condition())) {
    if (now() > deadline) assert.fail(`Not within ${limitMs} ms: ${what}`)
    await pass(3)
  }
}

/** The promise's outcome, or a failure that says what did not come in time. */
export function inTime<T>(what: string, promise: Promise<T>, limitMs = PATIENCE_MS): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const late = new assert.AssertionError({ message: `Not within ${limitMs} ms: ${what}` })
    const cancel = systemEnv.timer(limitMs, () => reject(late), { keepAlive: true })
    promise.then(resolve, reject).finally(cancel)
  })
}

/** The error, which must be a HoldfastError with that code. */
export async function rejectsWith(code: ErrorCode, promise: Promise<unknown>): Promise<HoldfastError> {
  const outcome = await inTime(`a rejection with ${code}`, settled(promise))
  if ('value' in outcome)
    assert.fail(`Resolved with ${String(outcome.value)} instead of rejecting with ${code}`)
  return hasCode(code, outcome.error)
}

/** The error that the function throws, which must be a HoldfastError with that code. */
export function throwsWith(code: ErrorCode, work: () => unknown): HoldfastError {
  try {
    work()
  } catch (error) {
    return hasCode(code, error)
  }
  return assert.fail(`Nothing was thrown, expected ${code}`)
}

export function hasCode(code: ErrorCode, error: unknown): HoldfastError {
  if (!(error instanceof HoldfastError)) throw error
  assert.equal(error.code, code, error.message)
  assert.notEqual(error.message, '')
  return error
}

export async function settled<T>(promise: Promise<T>): Promise<{ value: T } | { error: unknown }> {
  try {
    return { value: await promise }
  } catch (error) {
    return { error }
  }
}

/** Looks at a promise from outside. Its rejection counts as handled. */
export class Watched<T> {
  readonly promise: Promise<T>
  isSettled = false
  /** `now()` when it settled. */
  settledAt = Number.NaN

  constructor(promise: Promise<T>) {
    this.promise = promise
    const note = (): void => {
      this.isSettled = true
      this.settledAt = now()
    }
    promise.then(note, note)
  }
}

/** The real machine, with its timers counted. */
export class CountingEnv implements Env {
  /** Timers that are waiting to fire. */
  activeTimers = 0
  /** Added to the wall clock. */
  wallOffsetMs = 0
  now = (): number => systemEnv.now()
  random = (): number => systemEnv.random()
  id = (): string => systemEnv.id()
  wallMs = (): number => systemEnv.wallMs() + this.wallOffsetMs
  keepProcess = (): void => systemEnv.keepProcess()
  letProcessEnd = (): void => systemEnv.letProcessEnd()

  timer(ms: number, run: () => void, options: { keepAlive: boolean }): Cancel {
    let isActive = true
    const end = (): void => {
      if (isActive) this.activeTimers--
      isActive = false
    }
    this.activeTimers++
    const cancel = systemEnv.timer(
      ms,
      () => {
        end()
        run()
      },
      options,
    )
    return () => {
      end()
      cancel()
    }
  }
}

/** Each number greater than the one before. */
export function assertIncreasing(numbers: readonly number[]): void {
  numbers.forEach((number, index) => {
    const before = numbers[index - 1]
    if (before !== undefined) assert.ok(number > before, `${number} does not follow ${before}`)
  })
}
