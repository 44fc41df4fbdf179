import { abortCases } from './abort.js'
import { acquireCases } from './acquire.js'
import { argumentCases } from './arguments.js'
import { barrierCases } from './barrier.js'
import { BEHAVIOURS } from './behaviours.js'
import { boundedLineCases } from './bounded-line.js'
import { cancelCases } from './cancel.js'
import { inTime, settled } from './checks.js'
import { chosenFenceCases } from './chosen-fences.js'
import { cohortCases } from './cohort.js'
import { cohortEndingCases } from './cohort-endings.js'
import { cohortTurnCases } from './cohort-turns.js'
import { contractCases } from './contract.js'
import { deathCases } from './deaths.js'
import { electionCases } from './election.js'
import { endingCases } from './endings.js'
import { fairnessCases } from './fairness.js'
import { fenceCases } from './fence.js'
import { GUISES, type Guise, type GuiseName } from './guises.js'
import { heirCases } from './heirs.js'
import { housekeepingCases } from './housekeeping.js'
import { idleCases } from './idle.js'
import { latchCases } from './latch.js'
import { leaseCases } from './lease.js'
import { lingerCases } from './linger.js'
import { lossCases } from './loss.js'
import { multiLockCases } from './multi-lock.js'
import { onceCases } from './once.js'
import { outageCases } from './outage.js'
import { overviewCases } from './overview.js'
import { ownerCases } from './owners.js'
import { pauseCases } from './pauses.js'
import { processCases } from './processes.js'
import { readWriteCases } from './read-write.js'
import { readerEndingCases } from './reader-endings.js'
import { readerFenceCases } from './reader-fences.js'
import { readersCases } from './readers.js'
import { reentryCases } from './reentry.js'
import { refusalCases } from './refusals.js'
import { releaseCases } from './release.js'
import { resizeCases } from './resize.js'
import { runCases } from './run.js'
import { Scene } from './scene.js'
import { semaphoreCases } from './semaphore.js'
import type { CaseSpec, ConformanceCase, ConformanceSubject } from './suite.js'
import { takeoverCases } from './takeover.js'
import { upgradeCases } from './upgrades.js'

/** More than any case takes; a case that hangs shall say so whatever the test runner does. */
const CASE_LIMIT_MS = 120_000
/** For those that are heavy, on a machine with other things to do. */
const HEAVY_LIMIT_MS = 180_000

/** What is true of every lock that excludes: run once with each. */
const OF_EVERY_LOCK: readonly CaseSpec[] = [
  acquireCases,
  abortCases,
  releaseCases,
  runCases,
  leaseCases,
  lossCases,
  outageCases,
  takeoverCases,
  fenceCases,
  fairnessCases,
].flat()

/** What is true of every lock that can be entered again, and passed on: a semaphore cannot. */
const OF_REENTRANT_LOCKS: readonly CaseSpec[] = [
  reentryCases,
  ownerCases,
  cohortCases,
  cohortTurnCases,
  cohortEndingCases,
  heirCases,
].flat()

/**
 * Of the cases across processes a few are run with every lock; a process costs too much to start
 * for what shows nothing new.
 */
const ACROSS_PROCESSES: readonly CaseSpec[] = [processCases, deathCases, pauseCases, endingCases].flat()

const OF_THEIR_OWN: readonly CaseSpec[] = [
  argumentCases,
  idleCases,
  housekeepingCases,
  contractCases,
  cancelCases,
  boundedLineCases,
  overviewCases,
  chosenFenceCases,
  readWriteCases,
  readersCases,
  lingerCases,
  readerFenceCases,
  readerEndingCases,
  upgradeCases,
  ofPermits(semaphoreCases),
  ofPermits(resizeCases),
  latchCases,
  ofPermits(barrierCases),
  multiLockCases,
  electionCases,
  onceCases,
  refusalCases,
].flat()

/** All of them need a store that counts permits. */
function ofPermits(specs: readonly CaseSpec[]): CaseSpec[] {
  return specs.map((spec) => ({ ...spec, permits: true }))
}

/** A case, and what it is run with. */
interface Staged {
  readonly spec: CaseSpec
  readonly guise: Guise
  readonly title: string
}

const STAGED: readonly Staged[] = [
  ...staged(OF_EVERY_LOCK, ['mutex', 'writer', 'only permit', 'last permit']),
  ...staged(OF_REENTRANT_LOCKS, ['mutex', 'writer']),
  ...staged(ACROSS_PROCESSES, ['mutex']),
  ...staged(
    ACROSS_PROCESSES.filter((spec) => spec.everyLock),
    ['writer', 'only permit', 'last permit'],
  ),
  ...staged(OF_THEIR_OWN, ['mutex']),
]

function staged(specs: readonly CaseSpec[], names: readonly GuiseName[]): Staged[] {
  const guises = GUISES.filter(({ name }) => names.includes(name))
  return guises.flatMap((guise) =>
    specs
      .filter((spec) => spec.notAs?.[guise.name] === undefined)
      .map((spec) => ({ spec, guise, title: titleOf(spec, guise) })),
  )
}

/** The cases of a mutex have the plain titles. */
function titleOf(spec: CaseSpec, guise: Guise): string {
  return guise.name === 'mutex' ? spec.title : `${spec.title} (${guise.name})`
}

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
  return STAGED.map(({ spec, guise, title }) => {
    const skip = skipOf(spec, guise, subject)
    return {
      title,
      behaviours: spec.behaviours,
      alone: spec.alone ?? false,
      ...(skip === undefined ? {} : { skip }),
      run: () => runCase(spec, guise, subject),
    }
  })
}

/** Why a case is not for this subject. */
function skipOf(spec: CaseSpec, guise: Guise, subject: ConformanceSubject): string | undefined {
  const { oneProcess, locksOnly, fixedFences } = subject
  const needsPermits = spec.permits || guise.lock.kind === 'semaphore'
  if (spec.processes && oneProcess !== undefined) return oneProcess
  if (needsPermits && locksOnly !== undefined) return locksOnly
  return spec.choosesFences ? fixedFences : undefined
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
    cases: STAGED.filter(({ spec }) => spec.behaviours.includes(number)).map(({ title }) => title),
    ...(notHere === undefined ? {} : { reason: notHere }),
  }))
}

async function runCase(spec: CaseSpec, guise: Guise, subject: ConformanceSubject): Promise<void> {
  const scene = new Scene(subject, await subject.open(), guise)
  try {
    await scene.prepare()
    const limitMs = spec.alone ? HEAVY_LIMIT_MS : CASE_LIMIT_MS
    await inTime(`the case "${spec.title}"`, spec.run(scene), limitMs)
  } catch (error) {
    // The case's own failure is the news; what a process complained of may be its cause.
    const end = await settled(scene.end())
    if ('error' in end && error instanceof Error) error.message += `\nAt its end: ${String(end.error)}`
    throw error
  }
  await scene.end()
}
