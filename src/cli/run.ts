import { formatMs } from '../base/duration.js'
import { systemEnv } from '../base/env.js'
import { HoldfastError } from '../base/errors.js'
import type { AcquireOptions, Hold, Holdfast } from '../index.js'
import { checkCommand } from './command.js'
import { EXIT } from './exit-codes.js'
import { CliError, describeFailure, say } from './failures.js'
import { Job } from './job.js'
import { parseRun, type RunRequest } from './run-request.js'
import { exitCodeOfSignal, SignalRelay } from './signals.js'
import { openLocks } from './store.js'
import { Watchdog } from './watchdog.js'

/** Runs a command under a lock and resolves with the exit code. */
export async function run(args: string[]): Promise<number> {
  const request = parseRun(args)
  if (process.platform === 'win32')
    throw new CliError(EXIT.usage, 'run needs process groups, which Windows does not have', 'Use WSL')
  checkCommand(request.command[0])
  const signals = new SignalRelay()
  try {
    const locks = await unlessCancelled(openLocks(request), signals)
    // At once: the store may not answer for long, and nothing is held.
    if (locks === undefined) process.exit(exitCodeOfCancel(signals))
    try {
      return await runWith(locks, request, signals)
    } finally {
      // The lock was released, or ends with its lease: a failure here must not hide the command's
      // exit code.
      await locks.close().catch(() => {})
    }
  } finally {
    signals.close()
  }
}

async function runWith(locks: Holdfast, request: RunRequest, signals: SignalRelay): Promise<number> {
  const hold = await take(locks, request, signals)
  if (hold === undefined) return exitCodeOfCancel(signals)
  try {
    return await runUnder(hold, request, signals)
  } finally {
    await release(hold)
  }
}

/** The hold; undefined if a signal came first. */
async function take(locks: Holdfast, request: RunRequest, signals: SignalRelay): Promise<Hold | undefined> {
  const mutex = locks.mutex(request.name)
  const options: AcquireOptions = { label: request.label, signal: signals.cancelled }
  if (request.leaseMs !== undefined) options.lease = request.leaseMs
  if (request.maxHoldMs !== undefined) options.maxHold = request.maxHoldMs
  try {
    const hold = request.isTry
      ? await mutex.tryAcquire(options)
      : await mutex.acquire({ ...options, wait: request.waitMs, maxWaiters: request.maxWaiters })
    if (hold === null) throw busy(request, 'and --try does not wait')
    return hold
  } catch (error) {
    if (signals.received !== undefined) return undefined
    if (error instanceof HoldfastError && error.code === 'ACQUIRE_TIMEOUT')
      throw busy(request, `and did not become free within ${formatMs(request.waitMs)}`)
    if (error instanceof HoldfastError && error.code === 'LINE_FULL')
      throw busy(request, `and ${request.maxWaiters} wait for it already (--max-waiters)`)
    throw error
  }
}

async function runUnder(hold: Hold, request: RunRequest, signals: SignalRelay): Promise<number> {
  if (signals.received !== undefined) return exitCodeOfCancel(signals)
  if (!hold.isValid)
    throw new CliError(
      EXIT.holdLost,
      `The hold of '${hold.resource}' was lost before the command was started`,
    )
  const run = systemEnv.id()
  const watchdog = new Watchdog(hold, request.graceMs, `HOLDFAST_RUN=${run}`)
  try {
    const job = await Job.start(request.command, {
      ...process.env,
      HOLDFAST_FENCE: String(hold.fence),
      HOLDFAST_RESOURCE: hold.resource,
      HOLDFAST_RUN: run,
    })
    watchdog.guard(job.session)
    forwardSignals(signals, job, hold)
    return await outcome(job, hold, request)
  } finally {
    watchdog.dismiss()
  }
}

/** Resolves when the command and all its processes have ended: the lock is not released before. */
async function outcome(job: Job, hold: Hold, request: RunRequest): Promise<number> {
  const code = await Promise.race([job.exited, whenLost(hold)])
  const wasHeld = hold.isValid
  // The signal comes before the message: another process may hold the lock already.
  const ending = job.isAlive ? job.end(request.graceMs) : undefined
  if (!wasHeld) sayLost(hold)
  else if (ending) say('the command has ended; ending the processes that it left behind')
  if ((await ending) === false) say('some of the processes that the command started could not be ended')
  if (hold.isValid && code !== undefined) return code
  if (wasHeld) sayLost(hold)
  return EXIT.holdLost
}

function sayLost(hold: Hold): void {
  const { reason } = hold.signal
  const what = reason instanceof Error ? describeFailure(reason) : `The hold of '${hold.resource}' was lost`
  say(`${what}; the command is ended`)
}

function whenLost(hold: Hold): Promise<undefined> {
  if (hold.signal.aborted) return Promise.resolve(undefined)
  return new Promise((resolve) => {
    hold.signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
}

function forwardSignals(signals: SignalRelay, job: Job, hold: Hold): void {
  signals.forwardTo({
    signal: (signal) => job.signal(signal),
    // Ctrl-Z reaches only holdfast, which cannot renew the lock while it is stopped. So the command
    // stops first, and continues only if the lock is still held.
    suspend: () => job.signalAll('SIGSTOP'),
    resume: () => {
      if (hold.isValid) job.signalAll('SIGCONT')
    },
  })
}

async function release(hold: Hold): Promise<void> {
  try {
    await hold.release()
  } catch (error) {
    say(
      `the lock on '${hold.resource}' ends with its lease, because the release failed: ${describeFailure(error)}`,
    )
  }
}

async function unlessCancelled<T>(work: Promise<T>, signals: SignalRelay): Promise<T | undefined> {
  const cancelled = new Promise<undefined>((resolve) => {
    signals.cancelled.addEventListener('abort', () => resolve(undefined), { once: true })
  })
  return Promise.race([work, cancelled])
}

function exitCodeOfCancel(signals: SignalRelay): number {
  return exitCodeOfSignal(signals.received ?? 'SIGTERM')
}

function busy(request: RunRequest, detail: string): CliError {
  return new CliError(
    EXIT.notAcquired,
    `'${request.name}' is held by another process, ${detail}`,
    'See who: holdfast ls, with the same --store and --space',
  )
}
