import { basename } from 'node:path'
import { toMs } from '../base/duration.js'
import { onlyName, readArguments, STORE_OPTIONS } from './arguments.js'
import { usageError } from './failures.js'
import type { StoreChoice } from './store.js'

/** The arguments of `holdfast run`. */
export interface RunRequest extends StoreChoice {
  name: string
  command: [string, ...string[]]
  /** Take the lock only if it is free. */
  isTry: boolean
  waitMs: number
  maxWaiters?: number
  leaseMs?: number
  maxHoldMs?: number
  label: string
  graceMs: number
}

const OPTIONS = {
  ...STORE_OPTIONS,
  wait: { type: 'string' },
  'max-waiters': { type: 'string' },
  lease: { type: 'string' },
  'max-hold': { type: 'string' },
  try: { type: 'boolean' },
  label: { type: 'string' },
  grace: { type: 'string' },
} as const

const DEFAULT_GRACE = '10s'

export function parseRun(args: string[]): RunRequest {
  const end = args.indexOf('--')
  const [file, ...rest] = end < 0 ? [] : args.slice(end + 1)
  const { values, positionals } = readArguments('run', end < 0 ? args : args.slice(0, end), OPTIONS)
  if (end < 0 && positionals.length > 1)
    throw usageError('put -- between NAME and the command: holdfast run NAME -- COMMAND', 'run')
  const name = onlyName('run', positionals)
  if (file === undefined) throw usageError('the command is missing: holdfast run NAME -- COMMAND', 'run')
  if (values.try && values.wait !== undefined)
    throw usageError('--try does not wait, so it cannot be used together with --wait', 'run')
  if (values.try && values['max-waiters'] !== undefined)
    throw usageError('--try does not wait, so it cannot be used together with --max-waiters', 'run')
  return {
    name,
    command: [file, ...rest],
    store: values.store,
    space: values.space,
    isTry: values.try ?? false,
    waitMs: values.wait === undefined ? Infinity : durationMs('--wait', values.wait),
    ...(values['max-waiters'] !== undefined && {
      maxWaiters: wholeNumber('--max-waiters', values['max-waiters']),
    }),
    ...(values.lease !== undefined && { leaseMs: durationMs('--lease', values.lease) }),
    ...(values['max-hold'] !== undefined && {
      maxHoldMs: durationMs('--max-hold', values['max-hold']),
    }),
    // Only the program's name: arguments may contain secrets, and every user of the store can read
    // labels.
    label: values.label ?? basename(file),
    graceMs: durationMs('--grace', values.grace ?? DEFAULT_GRACE),
  }
}

function wholeNumber(option: string, text: string): number {
  const number = /^\d+$/.test(text) ? Number(text) : 0
  if (Number.isSafeInteger(number) && number >= 1) return number
  throw usageError(`${option} is '${text}', but must be a whole number of at least 1`, 'run')
}

function durationMs(option: string, text: string): number {
  try {
    return toMs(text, { name: option })
  } catch {
    // In a shell, a bare number of milliseconds would be a trap: a unit is required.
    throw usageError(`${option} is '${text}', but must be a duration such as 500ms, 30s or 5m`, 'run')
  }
}
