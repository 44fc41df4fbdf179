import { expect, it } from 'vitest'
import { type QuorumTally, simulateQuorum } from '../../src/testing/quorum-simulation.js'

/** HOLDFAST_SEEDS=5000 runs more of them; HOLDFAST_SEED=42 starts elsewhere. */
const SEEDS = Number(process.env['HOLDFAST_SEEDS'] ?? 100)
const FIRST = Number(process.env['HOLDFAST_SEED'] ?? 1)

it(`keeps its promises over several members, in ${SEEDS} simulated worlds`, {
  timeout: SEEDS * 4000,
}, async () => {
  const sum: Partial<QuorumTally> = {}
  const failures: string[] = []
  for (let seed = FIRST; seed < FIRST + SEEDS; seed++) {
    try {
    const tally = await simulateQuorum({ seed, isMixed: seed % 2 === 0 })
    for (const [name, count] of Object.entries(tally) as [keyof QuorumTally, number][])
      sum[name] = (sum[name] ?? 0) + count
    } catch (e) { failures.push((e as Error).message) }
  }
  console.log(`simulated ${SEEDS} worlds:`, JSON.stringify(sum))
  console.log(failures.join('\n'))
  expect(failures).toEqual([])
})
