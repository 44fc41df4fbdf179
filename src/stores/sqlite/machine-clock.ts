import { createRequire } from 'node:module'
import { join } from 'node:path'
import { systemEnv } from '../../base/env.js'
import { HoldfastError } from '../../base/errors.js'

/** Of Linux; the clock of Node there. */
const CLOCK_MONOTONIC = 1
/** musl finds itself under this name, too. */
const C_LIBRARY = 'libc.so.6'

/** clock_gettime(2): writes seconds and nanoseconds into `time`, and returns 0 if it could. */
type ClockGetTime = (clock: number, time: BigInt64Array) => number

/** What decides whether the processes of a JavaScript runtime share a clock. */
export interface Runtime {
  readonly name: string
  readonly platform: string
  /** Loads clock_gettime from the C library, or throws. null: the runtime's own clock is the machine's. */
  readonly loadClockGetTime: (() => ClockGetTime) | null
}

let present: (() => number) | undefined

/**
 * Monotonic milliseconds that are the same in every process of the machine, also under different runtimes.
 * Throws UNSUPPORTED where there is no such clock.
 */
export function machineClock(): () => number {
  present ??= clockOf(presentRuntime())
  return present
}

/**
 * Bun and Deno count from the start of each process: times of two processes cannot be compared. On Linux they can read the clock
 * that Node uses from the C library. Elsewhere that is refused: on macOS, for one, some clocks stop while the machine sleeps.
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
  const what = `Under ${name} on ${platform} the processes have no clock in common, by which leases in a lock file could end`
  const message = `${what}; ${advice}, or take a store with a server, such as Redis`
  return new HoldfastError('UNSUPPORTED', message, { store: 'sqlite', cause })
}

function presentRuntime(): Runtime {
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

/** What is used of Deno and of Bun, so that their types are not needed to compile. */
interface DenoGlobal {
  permissions: { querySync(permission: { name: 'ffi' }): { state: string } }
  dlopen(library: string, symbols: { clock_gettime: object }): { symbols: { clock_gettime: ClockGetTime } }
}
type BunFfi = Pick<DenoGlobal, 'dlopen'>

function loadInDeno(): ClockGetTime {
  const deno = (globalThis as unknown as { Deno: DenoGlobal }).Deno
  // Asked first: without the permission, dlopen would stop at a prompt on the terminal.
  const { state } = deno.permissions.querySync({ name: 'ffi' })
  if (state !== 'granted') throw new Error(`Deno's permission ffi is not granted (${state})`)
  const clock_gettime = { parameters: ['i32', 'buffer'], result: 'i32' }
  return deno.dlopen(C_LIBRARY, { clock_gettime }).symbols.clock_gettime
}

function loadInBun(): ClockGetTime {
  // A built-in module, so it does not matter from where it is looked for.
  const bun = createRequire(join(process.cwd(), 'package.json'))('bun:ffi') as BunFfi
  const clock_gettime = { args: ['i32', 'ptr'], returns: 'i32' }
  return bun.dlopen(C_LIBRARY, { clock_gettime }).symbols.clock_gettime
}
