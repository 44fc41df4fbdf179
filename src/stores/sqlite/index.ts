import { resolve } from 'node:path'
import { type Env, systemEnv } from '../../base/env.js'
import { invalid } from '../../base/errors.js'
import { checkOptions } from '../../base/options.js'
import type { Store } from '../../contract/store.js'
import type { SqliteDriverName } from '../../drivers/sqlite.js'
import { readBootId } from './clock.js'
import { machineClock } from './machine-clock.js'
import { SqliteStore } from './store.js'

/** The options of `sqlite`. */
export interface SqliteOptions {
  /** Default: `node:sqlite` where Node has it, else `better-sqlite3`, else `libsql`. */
  driver?: SqliteDriverName | undefined
  /** Time, timers and randomness in place of the machine's, for simulations. */
  env?: Env | undefined
}

const DRIVERS: readonly SqliteDriverName[] = ['node:sqlite', 'better-sqlite3', 'libsql']

/**
 * A store in one file, for the processes of one machine. A missing file is created; its folder must
 * exist. Keep it on a local disk: the locks of network file systems are not reliable.
 *
 * @example
 * ```ts
 * import { Holdfast } from 'holdfast'
 * import { sqlite } from 'holdfast/sqlite'
 *
 * const locks = new Holdfast(sqlite('./locks.db'))
 * await locks.mutex('report').run(async () => console.log('the only process that does this now'))
 * await locks.close()
 * ```
 */
export function sqlite(path: string, options: SqliteOptions = {}): Store {
  const { driver } = checkOptions(options, { driver: true, env: true }, "{ driver: 'libsql' }")
  if (driver !== undefined && !DRIVERS.includes(driver))
    throw invalid(`driver is '${driver}', but must be one of ${DRIVERS.join(', ')}`)
  const env = options.env ?? { ...systemEnv, now: machineClock() }
  // Resolved now: a later change of the working directory must not lead to another file.
  return new SqliteStore({ path: resolve(checkPath(path)), driver, env, bootId: readBootId() })
}

function checkPath(path: unknown): string {
  if (typeof path !== 'string')
    throw invalid(`The path of the lock file must be a string, not ${typeof path}`)
  if (path === '' || path === ':memory:')
    throw invalid(
      `'${path}' would be a database that no other process sees; give the path of a file, or use memory() from holdfast/memory`,
    )
  if (/^[a-z][a-z0-9+.-]+:/i.test(path))
    throw invalid(`'${path}' looks like a URL; give the path of a file, such as ./locks.db`)
  if (path.includes('\0')) throw invalid('The path of the lock file contains a NUL character')
  return path
}
