import { abortCases } from './abort.js'
import { acquireCases } from './acquire.js'
import { argumentCases } from './arguments.js'
import { BEHAVIOURS } from './behaviours.js'
import { inTime } from './checks.js'
import { contractCases } from './contract.js'
import { deathCases } from './deaths.js'
import { endingCases } from './endings.js'
import { fairnessCases } from './fairness.js'
import { fenceCases } from './fence.js'
import { housekeepingCases } from './housekeeping.js'
import { idleCases } from './idle.js'
import { leaseCases } from './lease.js'
import { lossCases } from './loss.js'
import { outageCases } from './outage.js'
import { ownerCases } from './owners.js'
import { pauseCases } from './pauses.js'
import { processCases } from './processes.js'
import { reentryCases } from './reentry.js'
import { releaseCases } from './release.js'
import { runCases } from './run.js'
import { Scene } from './scene.js'
import type { CaseSpec, ConformanceCase, ConformanceSubject } from './suite.js'
import { takeoverCases } from './takeover.js'

/** More than any case takes; a case that hangs shall say so whatever the test runner does. */
const CASE_LIMIT_MS = 60_000

const SPECS: readonly CaseSpec[] = [
  acquireCases,
  abortCases,
  argumentCases,
  releaseCases,
  runCases,
  leaseCases,
  lossCases,
  outageCases,
  takeoverCases,
  fenceCases,
  reentryCases,
  ownerCases,
  fairnessCases,
  idleCases,
  housekeepingCases,
  contractCases,
  processCases,
  deathCases,
  pauseCases,
  endingCases,
].flat()

/**
 * The cases that every store must pass, for any test runner.
 *
 * @example
 * ```ts
 * import { test } from 'node:test'
 * import { memory } from 'holdfast/memory'
 * import { conformanceCases } from 'holdfast/testing'
 *
 * const cases = conformanceCases({
 *   name: 'memory',
 *   oneProcess: 'its lines are in the memory of one process',
 *   async open() {
 *     const store = memory()
 *     return { store: () => store, dispose: async () => {} }
 *   },
 * })
 * for (const { title, skip, run } of cases) test(title, { skip: skip ?? false }, run)
 * ```
 */
export function conformanceCases(subject: ConformanceSubject): ConformanceCase[] {
  return SPECS.map((spec) => ({
    title: spec.title,
    behaviours: spec.behaviours,
    alone: spec.alone ?? false,
    ...(spec.processes && subject.oneProcess !== undefined ? { skip: subject.oneProcess } : {}),
    run: () => runCase(spec, subject),
  }))
}

/** A line of the list of behaviours, and the cases that show it. */
export interface BehaviourReport {
  number: number
  text: string
  /** The titles of the cases. */
  cases: string[]
  /** Where there is no case: why. */
  reason?: string
}

/** What the suite covers: every behaviour with its cases, or with the reason why it has none. */
export function conformanceBehaviours(): BehaviourReport[] {
  return BEHAVIOURS.map(({ number, text, notHere }) => ({
    number,
    text,
    cases: SPECS.filter((spec) => spec.behaviours.includes(number)).map((spec) => spec.title),
    ...(notHere === undefined ? {} : { reason: notHere }),
  }))
}

async function runCase(spec: CaseSpec, subject: ConformanceSubject): Promise<void> {
  const scene = new Scene(subject, await subject.open())
  try {
    await inTime(`the case "${spec.title}"`, spec.run(scene), CASE_LIMIT_MS)
  } catch (error) {
    // The case's own failure is the news; what its remains do at the clean-up is not.
    await scene.end().catch(() => {})
    throw error
  }
  await scene.end()
}
