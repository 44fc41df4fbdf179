import { hash } from 'node:crypto'

/** What GET_LOCK tells apart by itself: it ignores case, and takes 64 characters at most. */
const PLAIN = /^[a-z0-9_.:/-]{1,64}$/
const HASHED = 'sha256:'
const HASH_LENGTH = 57

/**
 * The name for GET_LOCK: a plain one is its own; of any other, the first digits of the SHA-256. Documented, so that other languages can join; in SQL:
 * `CONCAT('sha256:', LEFT(SHA2(name, 256), 57))`. Needs no quoting.
 */
export function sessionLockName(name: string): string {
  if (PLAIN.test(name) && !name.startsWith(HASHED)) return name
  return HASHED + hash('sha256', name, 'hex').slice(0, HASH_LENGTH)
}
