import { pass } from '../../src/testing/conformance/checks.js'
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

/** What ends after its own time, also beside a fault that lasts longer. */
export function lasting(ms: number, end: Heal): Heal {
  const ending = pass(ms).then(end)
  ending.catch(() => {})
  return () => ending
}
