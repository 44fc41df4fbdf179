import type { Loop, Way } from './crowd.js'
import type { Nemesis } from './nemesis.js'

/** A store in the campaign. */
export interface ProvedStore {
  /** On the command line, and in the names of files. */
  readonly name: string
  /** In the report: `Redis, one server`. */
  readonly title: string
  /** Its page in docs/stores. */
  readonly page: string
  /** How long a hold outlives its process. */
  readonly leaseMs: number
  /** What the workers ask for, where the store's session ends a hold. Default: `leaseMs`. */
  readonly askedLeaseMs?: number
  /** Default: 5 processes with one client each. */
  readonly workers?: number
  readonly clients?: number
  /** false: it has no semaphores. */
  readonly hasSemaphores?: boolean
  /** How the servers are set up, for the report. */
  readonly setup: string
  /** Faults that could be expected of it, and are not made. */
  readonly missing?: readonly { readonly fault: string; readonly reason: string }[]
  /** null: it can be started here. Otherwise why not. */
  obstacle(): string | null
  start(): Promise<RunningStore>
}

interface RunningStore {
  readonly nemeses: readonly Nemesis[]
  wayOf(worker: number): Promise<Way>
  stop(): Promise<void>
}

const SEATS: Loop = { lock: 'seats', kind: 'semaphore', capacity: 3 }
const MORE_MUTEXES: Loop[] = [
  { lock: 'quick-2', kind: 'mutex' },
  { lock: 'quick-3', kind: 'mutex' },
]
/** Most grants are made on these, by so many tasks of each process. Writers of `pages` meet readers. */
const DENSE_TASKS = 80
const DENSE_MUTEXES = 5
/** Those who hold one when a fault begins mostly lose it. */
const LONG = 4

/** The locks that each client takes. */
export function loopsOf({ hasSemaphores = true, clients = 1 }: ProvedStore): Loop[] {
  const tasks = Math.ceil(DENSE_TASKS / clients)
  return [
    { lock: 'quick-0', kind: 'mutex' },
    { lock: 'quick-1', kind: 'mutex' },
    { lock: 'table', kind: 'read' },
    { lock: 'table', kind: 'write' },
    ...(hasSemaphores ? [SEATS] : MORE_MUTEXES),
    ...Array.from(
      { length: DENSE_MUTEXES },
      (_, n) => ({ lock: `dense-${n}`, kind: 'mutex', tasks }) as const,
    ),
    { lock: 'pages', kind: 'write', tasks },
    { lock: 'pages', kind: 'read' },
    ...Array.from({ length: LONG }, (_, n) => ({ lock: `long-${n}`, kind: 'mutex', isLong: true }) as const),
  ]
}
