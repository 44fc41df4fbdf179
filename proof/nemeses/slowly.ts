import type { Heal } from '../nemesis.js'

/**
 * The work that brings a fault about takes a while, and may need what another fault took away: it
 * is awaited when it is healed.
 */
export function slowly(begin: () => Promise<Heal>): Heal {
  const beginning = begin()
  beginning.catch(() => {})
  return async () => (await beginning)()
}
