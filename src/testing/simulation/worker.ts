import { HoldfastError } from '../../base/errors.js'
import type { Hold } from '../../primitives/hold.js'
import type { Holdfast } from '../../primitives/holdfast.js'
import type { Lock } from '../../primitives/lock.js'
import type { AcquireOptions } from '../../primitives/options.js'
import type { VirtualProcess } from '../virtual-env.js'
import { type Mix, randomLock } from './lock-choice.js'
import type { Witness } from './witness.js'

export interface WorkerContext {
  readonly process: VirtualProcess
  readonly locks: Holdfast
  readonly witness: Witness
  readonly resources: readonly string[]
  readonly mix: Mix
  /** No new work from this moment on. */
  isOver(): boolean
}

/**
 * One task of a simulated process: acquires, works and releases in every way that the API has,
 * until it is over.
 */
export async function work(context: WorkerContext): Promise<void> {
  while (!context.isOver()) {
    await expectedFailures(context, () => useOnce(context))
    await pause(context, random(context, 0, context.mix.isHot ? 20 : 200))
  }
}

async function useOnce(context: WorkerContext): Promise<void> {
  const { locks, mix, process, resources, witness } = context
  const name = resources[Math.floor(process.random() * resources.length)] ?? ''
  const lock = randomLock(name, { locks, mix, tally: witness.tally, random: () => process.random() })
  const options = randomAcquireOptions(context)
  const way = process.random()
  const newest = witness.newestFence(name)
  if (way < (mix.isHot ? 0.05 : 0.2)) {
    const hold = await lock.tryAcquire(options)
    if (hold) await workUnder(context, hold, options, newest)
    else witness.tally.refusals++
  } else if (way < 0.6) {
    await workUnder(context, await lock.acquire(options), options, newest)
  } else {
    await lock.run(async (hold) => {
      witness.granted(process, hold, newest)
      await pause(context, workMs(context))
      if (process.random() < 0.5) return
      if (await downgraded(context, hold))
        await enterAgain(context, hold, locks.readWrite(name).read, options)
      else await enterAgain(context, hold, lock, options)
    }, options)
  }
}

async function enterAgain(
  context: WorkerContext,
  outer: Hold,
  lock: Lock,
  options: AcquireOptions,
): Promise<void> {
  const { process, witness } = context
  const newest = witness.newestFence(outer.resource)
  await lock.run(async (again) => {
    if (again.fence === outer.fence) witness.tally.reentries++
    // The outer hold was lost meanwhile, so this is a new one.
    else witness.granted(process, again, newest)
    await pause(context, random(context, 0, 100))
  }, options)
}

async function workUnder(
  context: WorkerContext,
  hold: Hold,
  { maxHold }: AcquireOptions,
  newestWhenAsked: number,
): Promise<void> {
  context.witness.granted(context.process, hold, newestWhenAsked)
  await pause(context, workMs(context))
  try {
    if (context.process.random() < 0.2) await extend(context, hold)
    if (await downgraded(context, hold)) await pause(context, workMs(context))
  } finally {
    // Some are forgotten, and renewed for as long as their process lives and maxHold allows.
    if (maxHold === undefined || context.process.random() < 0.95) await hold.release()
  }
}

async function extend(context: WorkerContext, hold: Hold): Promise<void> {
  const ms = random(context, 10, 2000)
  await hold.extend(ms)
  // For as long as it was extended, so that the witness can see whether that was true.
  if (context.mix.isMixed) await pause(context, random(context, 0, ms))
}

/** In a mixed world some writers become readers in the middle of their work. */
async function downgraded({ mix, process, witness }: WorkerContext, hold: Hold): Promise<boolean> {
  if (!mix.isMixed || !hold.isExclusive || process.random() >= 0.2) return false
  await hold.downgrade()
  witness.tally.downgrades++
  return true
}

function randomAcquireOptions(context: WorkerContext): AcquireOptions {
  const { process } = context
  const options = context.mix.isHot ? commonTerms(context) : anyTerms(context)
  if (process.random() < 0.7) options.wait = random(context, 1, 3000)
  if (process.random() < 0.2) options.maxWaiters = process.random() < 0.5 ? 1 : 3
  if (process.random() < 0.2) options.signal = abortAfter(context, random(context, 0, 1000))
  return options
}

function anyTerms(context: WorkerContext): AcquireOptions {
  return { lease: random(context, 100, 1500), maxHold: random(context, 200, 5000) }
}

/** Tasks of one process can only follow each other if they ask for the same. */
function commonTerms(context: WorkerContext): AcquireOptions {
  const { process } = context
  if (process.random() < 0.1) return anyTerms(context)
  return { lease: process.random() < 0.8 ? 800 : 200 }
}

function abortAfter({ process }: WorkerContext, ms: number): AbortSignal {
  const controller = new AbortController()
  process.timer(ms, () => controller.abort(), { keepAlive: false })
  return controller.signal
}

/**
 * Mostly short, sometimes longer than the lease. On a hot lock mostly so short that passing it on
 * pays.
 */
function workMs(context: WorkerContext): number {
  const isLong = context.process.random() < (context.mix.isHot ? 0.05 : 0.2)
  if (isLong) return random(context, 50, 3000)
  return random(context, 0, context.mix.isHot ? 4 : 50)
}

function random({ process }: WorkerContext, least: number, most: number): number {
  return least + process.random() * (most - least)
}

function pause({ process }: WorkerContext, ms: number): Promise<void> {
  return new Promise((resolve) => {
    process.timer(ms, resolve, { keepAlive: true })
  })
}

/** Faults lead to errors with a code, and to no others. */
async function expectedFailures({ witness }: WorkerContext, run: () => Promise<void>): Promise<void> {
  try {
    await run()
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error
    if (error.code === 'HOLD_LOST') witness.tally.losses++
    else if (error.code === 'ACQUIRE_TIMEOUT' || error.code === 'ABORTED') witness.tally.timeouts++
    else if (error.code === 'LINE_FULL') witness.tally.refusals++
    else if (error.code === 'STORE_UNAVAILABLE') witness.tally.unavailable++
    // extend() beyond maxHold.
    else if (error.code !== 'INVALID_ARGUMENT') throw error
  }
}
