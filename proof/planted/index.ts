import type { Store } from '../../src/contract/store.js'
import {
  countedAfterReply,
  fencesFromClock,
  fencesLostWithLine,
  lostWaiters,
  noCheckAfterWaiting,
  overtakingReaders,
  recreatingRenewals,
  releaseOfAnyHold,
  uncountedPermits,
} from './plants.js'
import {
  lateGrant,
  lateReader,
  lateRelease,
  lateReply,
  patientWaiter,
  renewalAfterBreak,
  type Scenario,
  succession,
  twoPairs,
  WAITER_PATIENCE_MS,
} from './scenarios.js'
import { type Plant, Stage } from './stage.js'

/** A bug that both judges must find, and what provokes it. */
export interface PlantedBug {
  readonly title: string
  readonly plant: Plant
  readonly scenario: Scenario
  /** What our check calls it. */
  readonly rule: string
  readonly patienceMs?: number
  /** A hold has to lapse while its client lives: not where holds live as long as the session. */
  readonly needsLapse?: boolean
  /** It is planted in a quorum of so many members. Left out: in one store. */
  readonly members?: number
}

export const PLANTED_BUGS: readonly PlantedBug[] = [
  {
    title: 'release without owner check',
    plant: { atStore: releaseOfAnyHold },
    scenario: lateRelease,
    rule: 'overlap',
    needsLapse: true,
  },
  {
    title: 'fence from the clock alone',
    plant: { atStore: fencesFromClock },
    scenario: succession,
    rule: 'fence',
  },
  {
    title: 'fence that expires with the line',
    plant: { atStore: fencesLostWithLine },
    scenario: succession,
    rule: 'fence',
  },
  {
    title: 'renewal that re-creates',
    plant: { atStore: recreatingRenewals },
    scenario: renewalAfterBreak,
    rule: 'overlap',
  },
  {
    title: 'no check after waiting',
    plant: { atClient: noCheckAfterWaiting },
    scenario: lateGrant,
    rule: 'overlap',
    needsLapse: true,
  },
  {
    title: 'validity counted after the reply',
    plant: { atClient: countedAfterReply },
    scenario: lateReply,
    rule: 'overlap',
    needsLapse: true,
  },
  {
    title: 'quorum without validity check',
    plant: { atClient: countedAfterReply, atMember: countedAfterReply },
    scenario: lateReply,
    rule: 'overlap',
    needsLapse: true,
    members: 3,
  },
  {
    title: 'lost wake-up',
    plant: { atStore: lostWaiters },
    scenario: patientWaiter,
    rule: 'lost waiter',
    patienceMs: WAITER_PATIENCE_MS,
  },
  {
    title: 'overtaking reader',
    plant: { atStore: overtakingReaders },
    scenario: lateReader,
    rule: 'overlap',
  },
  {
    title: 'permits that are not counted',
    plant: { atStore: uncountedPermits },
    scenario: twoPairs,
    rule: 'permits',
  },
]

/** Runs the scenario on the stores, with the bug or without. Gives the history as text. */
export async function runPlanted(
  bug: PlantedBug,
  stores: readonly Store[],
  isPlanted: boolean,
): Promise<string> {
  const space = `planted-${isPlanted ? 'bug' : 'control'}-${bug.title.replaceAll(' ', '-')}`
  const stage = new Stage(stores, isPlanted ? bug.plant : {}, space)
  try {
    await bug.scenario(stage)
  } finally {
    await stage.close()
  }
  return stage.recording.text
}
