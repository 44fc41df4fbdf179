import { expect, it } from 'vitest'
import { type QuorumTally, simulateQuorum } from '../../src/testing/quorum-simulation.js'

/** HOLDFAST_SEEDS=5000 runs more of them; HOLDFAST_SEED=42 starts elsewhere. */
const SEEDS = Number(process.env['HOLDFAST_SEEDS'] ?? 100)
const FIRST = Number(process.env['HOLDFAST_SEED'] ?? 1)
/** Shorter than by default: more worlds tell more than longer ones. */
const FAULTY_MS = 4_000
const FEW = { processes: 3, tasksPerProcess: 3 }

it(`keeps its promises over several members, in ${SEEDS} simulated worlds`, {
  timeout: SEEDS * 4000,
}, async () => {
  const sum: Partial<QuorumTally> = {}
  for (let seed = FIRST; seed < FIRST + SEEDS; seed++) {
    const tally = await simulateQuorum({ seed, isMixed: seed % 2 === 0, faultyMs: FAULTY_MS, ...FEW })
    for (const [name, count] of Object.entries(tally) as [keyof QuorumTally, number][])
      sum[name] = (sum[name] ?? 0) + count
  }
  console.log(`simulated ${SEEDS} worlds:`, JSON.stringify(sum))
  // A run counts only if enough has happened in it.
  expect(sum.grants).toBeGreaterThan(SEEDS * 10)
  expect(sum.reads).toBeGreaterThan(SEEDS * 10)
  expect(sum.losses).toBeGreaterThan(SEEDS / 4)
  expect(sum.timeouts).toBeGreaterThan(SEEDS)
  expect(sum.restarts).toBeGreaterThan(SEEDS)
  expect(sum.forgetfulRestarts).toBeGreaterThan(SEEDS / 2)
  expect(sum.majorities).toBeGreaterThan(SEEDS * 10)
  expect(sum.raises).toBeGreaterThan(SEEDS * 10)
  expect(sum.refusedRaises).toBeGreaterThan(SEEDS)
  expect(sum.usherChanges).toBeGreaterThan(SEEDS)
})

it('keeps its promises in worlds that have failed before', async () => {
  // A view looked again and again for as long as a silent member had taken, and kept close() waiting.
  await simulateQuorum({ seed: 56024, isMixed: true })
  // Two pulses at once asked for blocks with the same first fence, the second for a longer one.
  await simulateQuorum({ seed: 95228, isMixed: true })
})

it('is repeatable: the same seed, the same history', async () => {
  expect(await simulateQuorum({ seed: 7 })).toEqual(await simulateQuorum({ seed: 7 }))
})
