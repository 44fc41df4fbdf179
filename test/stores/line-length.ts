import type { Holdfast } from '../../src/index.js'

/** How many wait for the lock 'door'. */
export async function lineLength(locks: Holdfast): Promise<number> {
  for await (const { waiters } of locks.inspect({ prefix: 'door' })) return waiters.length
  return 0
}
