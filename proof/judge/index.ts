import { spawnSync } from 'node:child_process'
import { missingPorcupine, porcupineProgram } from '../../scripts/porcupine.mjs'
import type { HistoryRecord } from '../history.js'
import { recordsOf } from '../records.js'
import { type CheckOptions, checkHistory, PATIENCE_MS } from './check.js'
import type { Violation } from './violation.js'

/** What Porcupine says of one lock or register. */
interface ObjectVerdict {
  readonly object: 'lock' | 'register'
  readonly name: string
  readonly verdict: 'linearizable' | 'violated' | 'undecided'
  readonly operations: number
  readonly parts: number
  readonly faults?: readonly { readonly records: readonly HistoryRecord[] }[]
}

interface PorcupineVerdict {
  readonly verdict: 'linearizable' | 'violated' | 'undecided' | 'skipped'
  readonly objects: readonly ObjectVerdict[]
  /** Why it was skipped, or could not decide. */
  readonly reason?: string
}

export interface Judgement {
  /** `undecided`: no judge found a violation, but not both could judge. */
  readonly verdict: 'passed' | 'violated' | 'undecided'
  readonly records: number
  readonly violations: readonly Violation[]
  readonly porcupine: PorcupineVerdict
  /** The locks and registers that only one judge finds fault with. */
  readonly differences: readonly string[]
}

export interface JudgeOptions extends CheckOptions {
  /** Porcupine gives up on a lock or register after this time. */
  readonly timeoutMs?: number
}

const TIMEOUT_MS = 60_000
const LONGEST_REPORT = 2 ** 30
/** Of each judge; the rest is counted. */
const MOST_FAULTS_TOLD = 5

/** Judges a file of records with both judges. */
export function judge(file: string, options: JudgeOptions = {}): Judgement {
  const records = [...recordsOf(file)]
  const violations = checkHistory(records, options)
  const porcupine = askPorcupine(file, options)
  const differences = porcupine.verdict === 'skipped' ? [] : differencesOf(violations, porcupine)
  const isViolated = violations.length > 0 || porcupine.verdict === 'violated'
  const isDecided = porcupine.verdict === 'linearizable'
  const verdict = isViolated ? 'violated' : isDecided ? 'passed' : 'undecided'
  return { verdict, records: records.length, violations, porcupine, differences }
}

/** Never passes in silence: where it cannot run, or fails, it says so. */
function askPorcupine(file: string, options: JudgeOptions = {}): PorcupineVerdict {
  const missing = missingPorcupine()
  if (missing !== null) return { verdict: 'skipped', objects: [], reason: missing }
  const { patienceMs = PATIENCE_MS, timeoutMs = TIMEOUT_MS } = options
  const { stdout, stderr, error } = spawnSync(
    porcupineProgram(),
    ['-patience', String(patienceMs), '-timeout', String(timeoutMs), file],
    { encoding: 'utf8', maxBuffer: LONGEST_REPORT },
  )
  if (stdout) return JSON.parse(stdout) as PorcupineVerdict
  return { verdict: 'undecided', objects: [], reason: error?.message ?? stderr.trim() }
}

function differencesOf(violations: readonly Violation[], { objects }: PorcupineVerdict): string[] {
  const ours = new Set(violations.map(({ object }) => object))
  const theirs = new Set(objects.filter(({ verdict }) => verdict === 'violated').map(({ name }) => name))
  const undecided = new Set(objects.filter(({ verdict }) => verdict === 'undecided').map(({ name }) => name))
  return [
    ...[...ours]
      .filter((name) => !theirs.has(name) && !undecided.has(name))
      .map((name) => `${name}: only ours`),
    ...[...theirs].filter((name) => !ours.has(name)).map((name) => `${name}: only Porcupine`),
  ]
}

/** The judgement in a few lines, for people. */
export function describeJudgement({
  verdict,
  records,
  violations,
  porcupine,
  differences,
}: Judgement): string {
  const operations = porcupine.objects.reduce((sum, each) => sum + each.operations, 0)
  const reason = porcupine.reason === undefined ? '' : `: ${porcupine.reason}`
  const undecided = porcupine.objects.filter((each) => each.verdict === 'undecided')
  return [
    `${verdict}: ${records} records, ${violations.length} violations by our check`,
    `Porcupine: ${porcupine.verdict}${reason}; ${porcupine.objects.length} objects, ${operations} operations`,
    ...undecided.map(({ object, name }) => `  not decided in time: ${object} ${name}`),
    ...differences.map((difference) => `  the judges differ on ${difference}`),
    ...told(
      violations.map(({ rule, object, text, records: at }) => `${object}: ${rule}: ${text}${lines(at)}`),
    ),
    ...told(
      porcupine.objects.flatMap(({ object, name, faults = [] }) =>
        faults.map((fault) => `Porcupine: ${object} ${name} is not linearizable${lines(fault.records)}`),
      ),
    ),
  ].join('\n')
}

function told(texts: readonly string[]): string[] {
  const more = texts.length - MOST_FAULTS_TOLD
  return [...texts.slice(0, MOST_FAULTS_TOLD), ...(more > 0 ? [`… and ${more} more`] : [])]
}

function lines(records: readonly HistoryRecord[]): string {
  return records.map((record) => `\n    ${JSON.stringify(record)}`).join('')
}
