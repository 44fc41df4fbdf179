// Slices of a few milliseconds, contestant after contestant in one process, again and again.
// Neighbouring slices see the same machine, so the median of their ratios hardly depends on what
// else runs on it.
import { median } from './measure.mjs'

/** Between two looks at the clock, which is not free beside a lock in memory. */
const PAIRS_PER_LOOK = 16

/** Runs `pair` one after the other for `ms`; gives pairs per second. */
export async function serial(ms, pair) {
  const start = performance.now()
  let count = 0
  while (performance.now() - start < ms) {
    for (let left = PAIRS_PER_LOOK; left > 0; left--) await pair()
    count += PAIRS_PER_LOOK
  }
  return count / ((performance.now() - start) / 1000)
}

/** The same in `tasks` loops at once; gives pairs per second of all together. */
export async function together(ms, tasks, pair) {
  const start = performance.now()
  const counts = await Promise.all(
    Array.from({ length: tasks }, async (_, task) => {
      let count = 0
      while (performance.now() - start < ms) {
        for (let left = PAIRS_PER_LOOK; left > 0; left--) await pair(task)
        count += PAIRS_PER_LOOK
      }
      return count
    }),
  )
  return counts.reduce((sum, count) => sum + count, 0) / ((performance.now() - start) / 1000)
}

/**
 * Measures `ours` beside `peer` (both `() => Promise<rate>`), slice by slice, who comes first by
 * turns. Gives the medians of both rates and of the ratio of neighbouring slices.
 */
export async function beside({ warmUps, slices }, ours, peer) {
  const [rates, peerRates, ratios] = [[], [], []]
  for (let slice = -warmUps; slice < slices; slice++) {
    let rate
    if (slice % 2 === 0) rate = await ours()
    const peerRate = await peer()
    rate ??= await ours()
    if (slice < 0) continue
    rates.push(rate)
    peerRates.push(peerRate)
    ratios.push(rate / peerRate)
  }
  return { rate: median(rates), peerRate: median(peerRates), ratio: median(ratios) }
}
