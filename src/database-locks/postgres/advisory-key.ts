import { createHash } from 'node:crypto'
import { invalid } from '../../base/errors.js'
import { checkName } from '../../base/names.js'

const LEAST = -(2n ** 63n)
const MOST = 2n ** 63n - 1n

/**
 * The key for `pg_advisory_lock(bigint)`: a number is its own key, a name has the first 64 bits of
 * its SHA-256. docs/stores/postgres.md has the same in SQL.
 */
export function advisoryKey(name: string | bigint): string {
  if (typeof name === 'string') {
    const digest = createHash('sha256').update(checkName(name, 'The name of a lock')).digest()
    return String(digest.readBigInt64BE())
  }
  if (typeof name !== 'bigint' || name < LEAST || name > MOST)
    throw invalid(`The key of an advisory lock must be a name or a bigint of 64 bits, not ${String(name)}`)
  return String(name)
}
