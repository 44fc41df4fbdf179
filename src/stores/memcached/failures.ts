import { HoldfastError } from '../../base/errors.js'
import { MemcachedError } from '../../drivers/memcached/index.js'
import { failuresOf } from '../shared/failures.js'

const STORE = 'memcached'

export const { explain, closed } = failuresOf({
  store: STORE,
  server: 'memcached',
  meaningOf(error, message) {
    if (!(error instanceof MemcachedError) || error.code !== 'REFUSED') return null
    const [, text] = MEANINGS.find(([words]) => words.test(message)) ?? []
    return { text: `memcached refused the command: ${message}${text ?? ''}`, retryable: isPassing(message) }
  },
})

const MEANINGS: readonly (readonly [RegExp, string])[] = [
  [/unauthenticated|authentication failure/i, '; give user and password as in its file of -Y'],
  [/out of memory/i, '; it has lost the line or state, so give it more memory'],
  [/metadump|lru crawler/i, '; it is started without the commands that list keys (-X, no_lru_crawler)'],
  [/too many open connections/i, '; raise its limit of connections (-c), or open fewer clients'],
  [/ERROR$|invalid flag/, '; memcached 1.6.10 or later is needed, for its meta commands'],
]

function isPassing(message: string): boolean {
  return /out of memory|BUSY|too many open connections/i.test(message)
}

/** Too many others came between. */
export function contended(what: string): HoldfastError {
  return new HoldfastError('STORE_UNAVAILABLE', `Too many clients change ${what} at once`, {
    store: STORE,
    retryable: true,
  })
}

/** A line has no room for another claim: it is one item, and its size is limited. */
export class LineFullError extends HoldfastError {
  /** `retryable`: it was no claim that failed, so it must not be given up. */
  constructor(resource: string, claims: number, bytes: number, retryable: boolean) {
    const text = `The line of '${resource}' is full: it has ${claims} claims, and an item of this memcached has room for ${Math.floor(bytes)} bytes of them; start memcached with a larger -I, or use another store for so many waiters`
    super('STORE_UNAVAILABLE', text, { store: STORE, resource, retryable })
  }
}

export function stateTooLarge(key: string, bytes: number, most: number): HoldfastError {
  const text = `The state '${key}' would have ${bytes} bytes, and an item of this memcached holds ${most}`
  return new HoldfastError('UNSUPPORTED', text, { store: STORE })
}

/** An item under one of our keys that we did not write. */
export class NotOursError extends HoldfastError {
  constructor(key: string) {
    const text = `The item ${key} of memcached was not written by this version of Holdfast; use another prefix`
    super('STORE_UNAVAILABLE', text, { store: STORE })
  }
}
