import { describe, expect, it } from 'vitest'
import type { PlantedFault } from '../../src/testing/simulation/members/backend.js'
import { runQuorumWorld } from '../../src/testing/simulation/quorum.js'
import {
  countedFromAnswer,
  coveredByOne,
  lateRenewals,
  recreating,
  votingAtOnce,
  writingBack,
} from './planted-quorum/faults.js'

/** Far more than it takes: most faults are noticed within 20 worlds, and all within 150. */
const MOST_SEEDS = 400
const VIOLATION = /is believed to be held by|came after|given out twice/

/** Why the world of that seed fails; null: it does not. */
async function failure(seed: number, planted: PlantedFault): Promise<string | null> {
  try {
    await runQuorumWorld({ seed, isMixed: seed % 2 === 0 }, planted)
    return null
  } catch (error) {
    return (error as Error).message
  }
}

async function firstFailure(planted: () => PlantedFault): Promise<{ seed: number; message: string }> {
  for (let seed = 1; seed <= MOST_SEEDS; seed++) {
    const message = await failure(seed, planted())
    if (message !== null) return { seed, message }
  }
  throw new Error(`not noticed in ${MOST_SEEDS} worlds`)
}

interface Planted {
  readonly title: string
  plant(): PlantedFault
  /** The same world without the fault. */
  control(): PlantedFault
}

const none = (): PlantedFault => ({})
const rightWriteBack = (): PlantedFault => writingBack('right')

const faults: readonly Planted[] = [
  { title: 'V1: fences are not written back', plant: () => writingBack('ignored'), control: rightWriteBack },
  {
    title: 'V2: a fence is written back although the claim is gone',
    plant: () => writingBack('blind'),
    control: rightWriteBack,
  },
  { title: 'V3: a member obeys a lower fence', plant: () => writingBack('lower'), control: rightWriteBack },
  { title: 'validity counts from the answer', plant: countedFromAnswer, control: none },
  { title: 'validity lasts as long as one member covers the hold', plant: coveredByOne, control: none },
  { title: 'a renewal makes a lapsed claim anew', plant: recreating, control: lateRenewals },
  { title: 'a member that has lost its locks votes at once', plant: votingAtOnce, control: none },
]

describe('the simulation of a quorum notices that', () => {
  it.each(faults)('$title', { timeout: MOST_SEEDS * 2000 }, async ({ title, plant, control }) => {
    const { seed, message } = await firstFailure(plant)
    console.log(`${title}: noticed in the world with seed ${seed}`)
    expect(message).toMatch(VIOLATION)
    expect(await failure(seed, control())).toBeNull()
  })
})
