import { mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { withoutLogins } from '../base/urls.js'
import type { Holdfast } from '../index.js'
import { EXIT } from './exit-codes.js'
import { CliError, usageError } from './failures.js'

export interface StoreChoice {
  store?: string | undefined
  space?: string | undefined
}

/**
 * `--store`, else HOLDFAST_STORE, else the user's SQLite file, so that two shells meet without
 * set-up.
 */
function urlOf({ store }: StoreChoice): string {
  return store ?? (process.env['HOLDFAST_STORE'] || defaultStore())
}

/** The chosen store, for people: without passwords and options. */
export function describeStore(choice: StoreChoice): string {
  // The options of a member of a quorum end where the next member begins.
  return withoutLogins(urlOf(choice)).replace(/[?#].*?(?=,[a-z][a-z0-9+.-]*:|$)/gis, '')
}

export async function openLocks(choice: StoreChoice): Promise<Holdfast> {
  const url = urlOf(choice)
  if (url.startsWith('memory:'))
    throw usageError("the store 'memory:' lives inside one process, so no other command would see the lock")
  const { Holdfast } = await import('../index.js')
  return Holdfast.open(url, choice.space === undefined ? {} : { space: choice.space })
}

function defaultStore(): string {
  const file = defaultStorePath()
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new CliError(
      EXIT.storeUnavailable,
      `the folder of the default store cannot be created: ${(error as Error).message}`,
      'Name another store with --store or HOLDFAST_STORE',
    )
  }
  return `sqlite:${file}`
}

function defaultStorePath(): string {
  const state = process.env['XDG_STATE_HOME']
  // By the XDG specification, a relative path is ignored.
  const folder = state !== undefined && isAbsolute(state) ? state : join(homedir(), '.local', 'state')
  return join(folder, 'holdfast', 'locks.db')
}
