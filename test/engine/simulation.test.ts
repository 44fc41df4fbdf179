import { expect, it } from 'vitest'
import { simulate, type Tally } from '../../src/testing/simulation.js'

/** HOLDFAST_SEEDS=5000 runs more of them; HOLDFAST_SEED=42 starts elsewhere. */
const SEEDS = Number(process.env['HOLDFAST_SEEDS'] ?? 100)
const FIRST = Number(process.env['HOLDFAST_SEED'] ?? 1)

it(`keeps its promises in ${SEEDS} simulated worlds`, { timeout: SEEDS * 2000 }, async () => {
  const sum: Partial<Tally> = {}
  for (let seed = FIRST; seed < FIRST + SEEDS; seed++) {
    const tally = await simulate({ seed })
    for (const [name, count] of Object.entries(tally) as [keyof Tally, number][])
      sum[name] = (sum[name] ?? 0) + count
  }
  console.log(`simulated ${SEEDS} worlds:`, JSON.stringify(sum))
  // A run counts only if enough has happened in it.
  expect(sum.grants).toBeGreaterThan(SEEDS * 30)
  expect(sum.losses).toBeGreaterThan(SEEDS)
  expect(sum.timeouts).toBeGreaterThan(SEEDS)
  expect(sum.reentries).toBeGreaterThan(SEEDS)
})

it('is repeatable: the same seed, the same history', async () => {
  expect(await simulate({ seed: 7 })).toEqual(await simulate({ seed: 7 }))
})
