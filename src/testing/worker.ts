// A process of the conformance suite: does with a Holdfast client what its parent says. Started by
// worker-client.ts.
import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { systemEnv } from '../base/env.js'
import { HoldfastError } from '../base/errors.js'
import type { Store } from '../contract/store.js'
import type { Hold } from '../primitives/hold.js'
import { Holdfast, type HoldfastOptions } from '../primitives/holdfast.js'
import type { Lock } from '../primitives/lock.js'
import type { SemaphoreAcquireOptions } from '../primitives/semaphore.js'
import type { ResourceView } from '../primitives/views.js'
import { now } from './clock.js'
import { type LockKind, lockOf, MUTEX } from './lock-kinds.js'
import { primitiveApi } from './worker-primitives.js'

export type WorkerApi = typeof api

export type FromWorker =
  | { complaint: string }
  | { call: number; value: unknown }
  | { call: number; error: { code: string | null; message: string } }

/** Options that can travel to another process. */
export type PlainOptions = Omit<SemaphoreAcquireOptions, 'signal'>

/** From when until when this process believes to hold, by the machine's monotonic clock. */
export interface Belief {
  name: string
  fence: number
  permits: number
  from: number
  /** null: still. */
  until: number | null
}

let locks: Holdfast | undefined
/** What is locked where a call does not say otherwise. */
let defaultLock: LockKind = MUTEX
const holds: Hold[] = []
const beliefs: Belief[] = []
let hammered = 0
let isLetGo = false

function client(): Holdfast {
  if (!locks) throw new Error('No client is open in this process')
  return locks
}

function lock(name: string, kind: LockKind = defaultLock): Lock {
  return lockOf(client(), name, kind)
}

function hold(number: number): Hold {
  const found = holds[number]
  if (!found) throw new Error(`No hold ${number} in this process`)
  return found
}

function believe(granted: Hold): Belief {
  const time = now()
  const belief: Belief = {
    name: granted.resource,
    fence: granted.fence,
    permits: granted.permits,
    from: time,
    until: granted.isValid ? null : time,
  }
  const { signal } = granted
  const end = (): void => {
    belief.until ??= now()
  }
  // One that was lost since the look above has an aborted signal, which fires no more.
  if (signal.aborted) end()
  else signal.addEventListener('abort', end)
  beliefs.push(belief)
  return belief
}

async function acquired(granted: Hold): Promise<{ hold: number; fence: number; at: number }> {
  holds.push(granted)
  const { from } = believe(granted)
  return { hold: holds.length - 1, fence: granted.fence, at: from }
}

/** Waits, keeps the hold for a while, gives it back. */
async function waitOnce(asked: Lock, options: PlainOptions, keepMs: number): Promise<void> {
  const granted = await asked.acquire(options)
  const belief = believe(granted)
  await new Promise<void>((resolve) => {
    systemEnv.timer(keepMs, resolve, { keepAlive: true })
  })
  belief.until ??= now()
  await granted.release()
}

/** Being sent away by close() is what the caller asked for. */
function unlessClosed(error: unknown): void {
  if (!(error instanceof HoldfastError && error.code === 'CLOSED')) complain(error)
}

async function hammer(name: string, options: PlainOptions): Promise<void> {
  for (;;) {
    const granted = await lock(name).acquire(options)
    hammered++
    await released(granted)
  }
}

/**
 * A hold of a short lease may be over before a busy machine has answered its release: then nobody
 * knows, and either outcome is fine.
 */
async function released(granted: Hold): Promise<void> {
  try {
    await granted.release()
  } catch (error) {
    if (!(error instanceof HoldfastError && error.code === 'STORE_UNAVAILABLE')) throw error
  }
}

const api = {
  ...primitiveApi(client, unlessClosed),

  async ping(): Promise<void> {},

  async open(
    address: { url: string; storeModule: string | null },
    options: Omit<HoldfastOptions, 'env'>,
    lockKind: LockKind = MUTEX,
  ): Promise<void> {
    defaultLock = lockKind
    if (address.storeModule === null) {
      locks = await Holdfast.open(address.url, options)
      return
    }
    const path = fileURLToPath(address.storeModule)
    const { default: makeStore } = (await import(path)) as {
      default: (url: string) => Store | Promise<Store>
    }
    locks = new Holdfast(await makeStore(address.url), options)
  },

  async acquire(name: string, options: PlainOptions, kind?: LockKind) {
    return acquired(await lock(name, kind).acquire(options))
  },

  async tryAcquire(name: string, options: PlainOptions, kind?: LockKind) {
    const granted = await lock(name, kind).tryAcquire(options)
    return granted && acquired(granted)
  },

  async downgrade(number: number): Promise<void> {
    await hold(number).downgrade()
  },

  async release(number: number): Promise<boolean> {
    const granted = hold(number)
    for (const belief of beliefs) if (belief.fence === granted.fence) belief.until ??= now()
    return granted.release()
  },

  async extend(number: number, ms: number): Promise<void> {
    await hold(number).extend(ms)
  },

  /** Reads the validity before anything else can happen in this process. */
  async look(number: number): Promise<{ isValid: boolean; remainingMs: number; isAborted: boolean }> {
    const { isValid, remainingMs, signal } = hold(number)
    return { isValid, remainingMs, isAborted: signal.aborted }
  },

  async export(number: number): Promise<string> {
    return hold(number).export()
  },

  async adopt(passed: string) {
    return acquired(await client().adopt(passed))
  },

  async inspect(prefix: string): Promise<ResourceView[]> {
    const resources: ResourceView[] = []
    for await (const resource of client().inspect({ prefix })) resources.push(resource)
    return resources
  },

  /**
   * Starts so many waits in order, and does not wait for them. Each keeps its hold for a while when
   * it has come.
   */
  async queue(
    name: string,
    count: number,
    options: PlainOptions,
    keepMs: number,
    kind?: LockKind,
  ): Promise<void> {
    for (let number = 0; number < count; number++)
      waitOnce(lock(name, kind), options, keepMs).catch(unlessClosed)
  },

  async beliefs(): Promise<Belief[]> {
    return beliefs
  },

  /**
   * Reads a number from a file, and writes it back plus one: wrong at once if two do it at the same
   * time.
   */
  async increment(name: string, file: string, times: number, options: PlainOptions): Promise<number[]> {
    const fences: number[] = []
    for (let time = 0; time < times; time++) {
      await lock(name).run(async (granted) => {
        const count = Number(await readFile(file, 'utf8'))
        await writeFile(file, String(count + 1))
        fences.push(granted.fence)
      }, options)
    }
    return fences
  },

  /** Acquires and releases for ever. */
  async hammer(name: string, options: PlainOptions): Promise<void> {
    hammer(name, options).catch(unlessClosed)
  },

  async hammered(): Promise<number> {
    return hammered
  },

  async clock(): Promise<{ wallMs: number; now: number }> {
    return { wallMs: systemEnv.wallMs(), now: now() }
  },

  async close(): Promise<void> {
    await client().close({ drain: 0 })
  },

  /** The parent is about to let the channel go; what happens then is the subject of the case. */
  async letGo(): Promise<void> {
    isLetGo = true
  },
}

interface ToWorker {
  call: number
  method: keyof WorkerApi
  args: unknown[]
}

async function answer({ call, method, args }: ToWorker): Promise<void> {
  const work = api[method] as (...args: unknown[]) => Promise<unknown>
  try {
    tell({ call, value: await work(...args) })
  } catch (error) {
    const code = error instanceof HoldfastError ? error.code : null
    tell({ call, error: { code, message: error instanceof Error ? error.message : String(error) } })
  }
}

function tell(message: FromWorker): void {
  if (process.connected) process.send?.(message)
}

function complain(error: unknown): void {
  process.exitCode = 1
  tell({ complaint: error instanceof Error ? (error.stack ?? error.message) : String(error) })
}

process.on('unhandledRejection', complain)
process.on('uncaughtException', complain)
process.on('message', (message) => void answer(message as ToWorker))
// A parent that died would leave processes behind that wait for ever.
process.on('disconnect', () => {
  if (!isLetGo) process.exit(1)
})
