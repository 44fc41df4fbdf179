import { createHash } from 'node:crypto'
import { invalid } from '../../../base/errors.js'
import { checkName } from '../../../base/names.js'

const [LEAST, MOST] = [-(2n ** 63n), 2n ** 63n - 1n]

/** The key of a lock for `pg_advisory_lock(bigint)`: a number as it is; of a name the first 64 bits of its SHA-256. docs/stores/postgres.md has it in SQL. */
export function keyOf(name: string | bigint): string {
  if (typeof name === 'string')
    return String(
      createHash('sha256').update(checkName(name, 'The name of a lock')).digest().readBigInt64BE(),
    )
  if (typeof name !== 'bigint' || name < LEAST || name > MOST)
    throw invalid(`The key of an advisory lock must be a name or a bigint of 64 bits, not ${String(name)}`)
  return String(name)
}
