import { hash } from 'node:crypto'

/** Names that GET_LOCK tells apart: it ignores case, and takes at most 64 characters. */
const PLAIN = /^[a-z0-9_.:/-]{1,64}$/
const HASHED = 'sha256:'
const HASH_LENGTH = 57

/**
 * The name for GET_LOCK. A plain name is used as it is; any other is
 * `CONCAT('sha256:', LEFT(SHA2(name, 256), 57))`, as the documentation says for other languages.
 * The result needs no quoting.
 */
export function sessionLockName(name: string): string {
  if (PLAIN.test(name) && !name.startsWith(HASHED)) return name
  return HASHED + hash('sha256', name, 'hex').slice(0, HASH_LENGTH)
}
