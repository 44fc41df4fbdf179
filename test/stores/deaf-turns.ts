import { expect } from 'vitest'
import type { Store } from '../../src/contract/store.js'
import { Holdfast } from '../../src/index.js'
import { eventually, inTime, pass } from '../../src/testing/conformance/checks.js'
import { lineLength } from './line-length.js'

/** HOLDFAST_DEAF_ROUNDS=200 for a proof; HOLDFAST_DEAF_REST_MS=2000 lets each line rest first, so that its waiters ask less often. */
const ROUNDS = Number(process.env['HOLDFAST_DEAF_ROUNDS'] ?? 2)
const REST_MS = Number(process.env['HOLDFAST_DEAF_REST_MS'] ?? 0)
const WAITERS = 4
/** The ordinary pulse comes only after a third of this. */
const PRESENCE_MS = 30_000
/** Below a third of the presence, and far above what asking by oneself takes. */
const SERVED_WITHIN_MS = 6000
/** For a test that plays all rounds. */
export const DEAF_LIMIT_MS = 30_000 * ROUNDS

/**
 * Several processes wait for one lock where none hears of its grant: each one is served soon after the one before it has left. New clients
 * and a new space for each round, so that each learns for itself that nothing is heard.
 */
export async function takeTurnsDeaf(makeStore: () => Store): Promise<void> {
  const late: number[] = []
  for (let round = 0; round < ROUNDS; round++) late.push(...(await playRound(makeStore)))
  if (ROUNDS > 2) console.log(summary(late))
  expect(Math.max(...late)).toBeLessThan(SERVED_WITHIN_MS)
}

/** How long after the one before it each waiter was served, in milliseconds. */
async function playRound(makeStore: () => Store): Promise<number[]> {
  const space = `deaf ${Math.random()}`
  const clients = Array.from(
    { length: WAITERS + 1 },
    () => new Holdfast(makeStore(), { space, presence: PRESENCE_MS }),
  )
  try {
    const [first, ...others] = clients
    const hold = await first?.mutex('door').acquire()
    const late: number[] = []
    let leftAt = 0
    const waiting: Promise<unknown>[] = []
    for (const [index, locks] of others.entries()) {
      const serve = (): void => {
        late.push(performance.now() - leftAt)
        leftAt = performance.now()
      }
      waiting.push(locks.mutex('door').run(serve))
      await eventually('a place in line', async () => (await lineLength(locks)) === index + 1)
    }
    await pass(REST_MS)
    leftAt = performance.now()
    await hold?.release()
    await inTime('everybody', Promise.all(waiting), 60_000)
    return late
  } finally {
    await Promise.all(clients.map((locks) => locks.close()))
  }
}

function summary(late: readonly number[]): string {
  const sorted = [...late].sort((one, other) => one - other)
  const at = (part: number): string => (sorted[Math.floor((sorted.length - 1) * part)] ?? 0).toFixed(0)
  return `${late.length} hand-overs: median ${at(0.5)} ms, 99 % ${at(0.99)} ms, longest ${at(1)} ms`
}
