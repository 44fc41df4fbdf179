import { HoldfastError } from '../../base/errors.js'
import type { Hold } from '../../engine/hold.js'
import type { Holdfast } from '../../primitives/holdfast.js'
import type { AcquireOptions } from '../../primitives/options.js'
import type { VirtualProcess } from '../virtual-env.js'
import type { Witness } from './witness.js'

export interface WorkerContext {
  readonly process: VirtualProcess
  readonly locks: Holdfast
  readonly witness: Witness
  readonly resources: readonly string[]
  /** Whether many want the same, again and again. */
  readonly isHot: boolean
  /** No new work after this moment of the process's own clock. */
  isOver(): boolean
}

/** How many of those who ask only want to read. */
const READ_RATE = 0.3

/** One task of a simulated process: acquires, works, releases, in every way that the API has, until it is over. */
export async function work(context: WorkerContext): Promise<void> {
  while (!context.isOver()) {
    await expectedFailures(context, () => one(context))
    await pause(context, random(context, 0, context.isHot ? 20 : 200))
  }
}

async function one(context: WorkerContext): Promise<void> {
  const { locks, process, resources, witness } = context
  const name = resources[Math.floor(process.random() * resources.length)] ?? ''
  const lock = process.random() < READ_RATE ? locks.readWrite(name).read : locks.mutex(name)
  const options = randomOptions(context)
  const way = process.random()
  const newest = witness.asks(name)
  if (way < (context.isHot ? 0.05 : 0.2)) {
    const hold = await lock.tryAcquire(options)
    if (hold) await hold_(context, hold, options, newest)
    else witness.tally.refusals++
  } else if (way < 0.6) {
    await hold_(context, await lock.acquire(options), options, newest)
  } else {
    await lock.run(async (hold) => {
      witness.granted(process, hold, newest)
      await pause(context, workMs(context))
      if (process.random() < 0.5) return
      const newestInside = witness.asks(name)
      await lock.run(async (again) => {
        if (again.fence === hold.fence) witness.tally.reentries++
        // The outer hold was lost meanwhile, so this is a new one.
        else witness.granted(process, again, newestInside)
        await pause(context, random(context, 0, 100))
      }, options)
    }, options)
  }
}

async function hold_(
  context: WorkerContext,
  hold: Hold,
  { maxHold }: AcquireOptions,
  newestWhenAsked: number,
): Promise<void> {
  context.witness.granted(context.process, hold, newestWhenAsked)
  await pause(context, workMs(context))
  try {
    if (context.process.random() < 0.2) await hold.extend(random(context, 10, 2000))
  } finally {
    // Some are forgotten, and renewed for as long as their process lives and maxHold allows.
    if (maxHold === undefined || context.process.random() < 0.95) await hold.release()
  }
}

function randomOptions(context: WorkerContext): AcquireOptions {
  const { process } = context
  const options = context.isHot ? fewTerms(context) : anyTerms(context)
  if (process.random() < 0.7) options.wait = random(context, 1, 3000)
  if (process.random() < 0.2) options.signal = abortAfter(context, random(context, 0, 1000))
  return options
}

function anyTerms(context: WorkerContext): AcquireOptions {
  return { lease: random(context, 100, 1500), maxHold: random(context, 200, 5000) }
}

/** What neighbours ask for is mostly the same. */
function fewTerms(context: WorkerContext): AcquireOptions {
  const { process } = context
  if (process.random() < 0.1) return anyTerms(context)
  return { lease: process.random() < 0.8 ? 800 : 200 }
}

function abortAfter({ process }: WorkerContext, ms: number): AbortSignal {
  const controller = new AbortController()
  process.timer(ms, () => controller.abort(), { keepAlive: false })
  return controller.signal
}

/** Mostly short, sometimes longer than the lease. Where the lock is hot, mostly so short that it is worth passing on. */
function workMs(context: WorkerContext): number {
  const isLong = context.process.random() < (context.isHot ? 0.05 : 0.2)
  if (isLong) return random(context, 50, 3000)
  return random(context, 0, context.isHot ? 4 : 50)
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
    else if (error.code === 'STORE_UNAVAILABLE') witness.tally.unavailable++
    // extend() beyond maxHold.
    else if (error.code !== 'INVALID_ARGUMENT') throw error
  }
}
