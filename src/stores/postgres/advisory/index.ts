import { systemEnv } from '../../../base/env.js'
import { invalid } from '../../../base/errors.js'
import { isPgPool, PgDriver } from '../pg.js'
import { AdvisoryLocks } from './locks.js'

/** One for each pool and schema: whoever asks for the locks of a pool finds the same session. */
const locks = new WeakMap<object, Map<string, AdvisoryLocks>>()

export function advisoryLocksOf(pool: unknown, schema: string): AdvisoryLocks {
  if (!isPgPool(pool))
    throw invalid('advisory() takes a Pool of pg: it has to know at once when the session of its locks ends')
  const known = locks.get(pool) ?? new Map<string, AdvisoryLocks>()
  locks.set(pool, known)
  const found = known.get(schema) ?? new AdvisoryLocks(pool, new PgDriver(pool, null, systemEnv), schema)
  known.set(schema, found)
  return found
}
