import { createRequire } from 'node:module'
import { join } from 'node:path'
import { systemEnv } from '../../base/env.js'
import { HoldfastError } from '../../base/errors.js'

/** Linux's number of the clock that Node uses. */
const CLOCK_MONOTONIC = 1
/** musl answers to this name, too. */
const C_LIBRARY = 'libc.so.6'

/** clock_gettime(2): writes seconds and nanoseconds to `time`; 0 is success. */
type ClockGetTime = (clock: number, time: BigInt64Array) => number

/** Decides whether the processes of a JavaScript runtime share a clock. */
export interface Runtime {
  readonly name: string
  readonly platform: string
  /** Loads clock_gettime, or throws. null: the runtime's own clock is the machine's. */
  readonly loadClockGetTime: (() => ClockGetTime) | null
}

let shared: (() => number) | undefined

/**
 * Monotonic milliseconds that are the same in every process of the machine, also under different
 * runtimes. Throws UNSUPPORTED where there is no such clock.
 */
export function machineClock(): () => number {
  shared ??= clockOf(currentRuntime())
  return shared
}

/**
 * Bun and Deno count from the start of each process, so the times of two processes cannot be
 * compared. On Linux they can read Node's clock through the C library. Elsewhere the store is
 * refused: on macOS, some clocks stop during sleep.
 */
export function clockOf(runtime: Runtime): () => number {
  if (runtime.loadClockGetTime === null) return systemEnv.now
  if (runtime.platform !== 'linux') throw noSharedClock(runtime, 'use Node there')
  const clockGetTime = load(runtime, runtime.loadClockGetTime)
  const time = new BigInt64Array(2)
  return () => {
    if (clockGetTime(CLOCK_MONOTONIC, time) !== 0) throw noSharedClock(runtime, 'use Node')
    return Number(time[0]) * 1000 + Number(time[1]) / 1e6
  }
}

function noSharedClock({ name, platform }: Runtime, advice: string, cause?: unknown): HoldfastError {
  const what = `Under ${name} on ${platform}, processes share no clock that could end the leases in a lock file`
  const message = `${what}; ${advice}, or use a store with a server, such as Redis`
  return new HoldfastError('UNSUPPORTED', message, { store: 'sqlite', cause })
}

function currentRuntime(): Runtime {
  const { platform, versions } = process
  if (versions['deno'] !== undefined) return { name: 'Deno', platform, loadClockGetTime: loadInDeno }
  if (versions['bun'] !== undefined) return { name: 'Bun', platform, loadClockGetTime: loadInBun }
  return { name: 'Node', platform, loadClockGetTime: null }
}

function load(runtime: Runtime, loadClockGetTime: () => ClockGetTime): ClockGetTime {
  try {
    return loadClockGetTime()
  } catch (error) {
    throw noSharedClock(runtime, runtime.name === 'Deno' ? 'run it with --allow-all' : 'use Node', error)
  }
}

/** The parts of Deno and Bun that we use: their types are not needed to compile. */
interface DenoGlobal {
  permissions: { querySync(permission: { name: 'ffi' }): { state: string } }
  dlopen(library: string, symbols: { clock_gettime: object }): { symbols: { clock_gettime: ClockGetTime } }
}
type BunFfi = Pick<DenoGlobal, 'dlopen'>

function loadInDeno(): ClockGetTime {
  const deno = (globalThis as unknown as { Deno: DenoGlobal }).Deno
  // Without the permission, dlopen would prompt on the terminal.
  const { state } = deno.permissions.querySync({ name: 'ffi' })
  if (state !== 'granted') throw new Error(`Deno's permission ffi is not granted (${state})`)
  const clock_gettime = { parameters: ['i32', 'buffer'], result: 'i32' }
  return deno.dlopen(C_LIBRARY, { clock_gettime }).symbols.clock_gettime
}

function loadInBun(): ClockGetTime {
  // A built-in module: the path to resolve from does not matter.
  const bun = createRequire(join(process.cwd(), 'package.json'))('bun:ffi') as BunFfi
  const clock_gettime = { args: ['i32', 'ptr'], returns: 'i32' }
  return bun.dlopen(C_LIBRARY, { clock_gettime }).symbols.clock_gettime
}
