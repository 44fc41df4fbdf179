import { type FaultFigures, type KeptRun, summed } from './kept.js'
import { CALM } from './nemesis.js'
import { RECOVERY_MS, type RunResult } from './run.js'
import type { ProvedStore } from './store.js'
import { inSeconds, number, paragraph, table } from './text.js'

/** A few lines for the terminal. */
export function summaryOf(
  store: ProvedStore,
  run: RunResult,
  { doesCount, faults, lacks = [] }: KeptRun,
): string {
  const late = run.windows.filter(({ recoveryMs, boundMs }) => recoveryMs > boundMs)
  return [
    `${store.name}: ${run.grants} grants in ${run.seconds} s, ${underFaults(faults)} of them under faults`,
    `${run.windows.length} windows, on ${run.setting}`,
    `${run.losses} holds lost, ${run.refused} stale writes refused, ${run.failures} calls failed`,
    `${run.unavailable} probes were told that the store is down`,
    `${run.violations.length} violations, ${late.length} late recoveries`,
    run.porcupine === null
      ? 'Judged by our own check only: Porcupine is not here.'
      : `Judged by our own check, and by Porcupine: ${run.porcupine} operations`,
    ...late.map(
      ({ faults, recoveryMs, boundMs }) => `  ${faults.join(' + ')}: ${recoveryMs} of ${boundMs} ms`,
    ),
    doesCount ? 'The run counts.' : 'The run does not count: too little happened, or a judge is missing.',
    ...lacks.map((lack) => `  ${lack}`),
    ...run.violations.map((violation) => `VIOLATION: ${violation}`),
  ].join('\n')
}

/** The page of a store, about all its runs. */
export function reportOf(store: ProvedStore, runs: readonly KeptRun[]): string {
  const faults = summed(runs.flatMap((run) => run.faults))
  const violations = runs.flatMap((run) => run.violations)
  return `${[
    `# Proof: ${store.title}`,
    paragraph(`This page is written by \`npm run prove\`. [How to read it](README.md).`),
    paragraph(
      `The setup: ${store.setup}. A hold outlives its process by ${inSeconds(store.leaseMs)}. The page`,
      `[of the store](../stores/${store.page}.md) says what is promised.`,
    ),
    ...runs.flatMap(({ setting }) => (setting === undefined ? [] : [paragraph(`It ran on ${setting}.`)])),
    totals(runs, faults, store),
    ...(violations.length === 0 ? [] : ['## Violations', violations.map((each) => `- ${each}`).join('\n')]),
    '## Faults',
    table(FAULT_COLUMNS, faults.map(rowOf)),
    ...pairsOf(runs),
    ...missingOf(store),
    ...excusesOf(runs),
    '## Repeat it',
    paragraph(
      'The seed gives the same faults in the same order. Their exact moments differ from run to run.',
    ),
    table(
      ['command', 'commit', 'date', 'grants', 'seconds', 'counts'],
      runs.map((run) => [
        `\`${run.command}\``,
        `\`${run.commit}\``,
        run.date,
        number(run.grants),
        number(run.seconds),
        run.doesCount ? 'yes' : 'no',
      ]),
    ),
  ].join('\n\n')}\n`
}

/** A row of the table over all stores. */
export function overviewOf(store: ProvedStore, runs: readonly KeptRun[]): string[] {
  const faults = summed(runs.flatMap((run) => run.faults))
  return [
    `[${store.title}](${store.name}.md)`,
    sum(runs, ({ grants }) => grants),
    number(underFaults(faults)),
    sum(faults.filter(isFault), ({ times }) => times),
    sum(runs, ({ losses }) => losses),
    sum(runs, ({ refused }) => refused),
    sum(runs, ({ violations }) => violations.length),
    longestOf(faults),
    inSeconds(store.leaseMs + RECOVERY_MS),
  ]
}

export const OVERVIEW = [
  ...['store', 'grants', 'under faults', 'fault windows', 'holds lost', 'refused writes', 'violations'],
  ...['longest recovery', 'lease + 1 s'],
]
const FAULT_COLUMNS = [
  ...['fault', 'times', 'grants', 'before healing', 'lost', 'refused', 'down', 'longest gap'],
  ...['recovery', 'every task'],
]

function isFault({ fault }: FaultFigures): boolean {
  return fault !== CALM
}

function underFaults(faults: readonly FaultFigures[]): number {
  return faults.filter(isFault).reduce((total, { grants }) => total + grants, 0)
}

function totals(runs: readonly KeptRun[], faults: readonly FaultFigures[], store: ProvedStore): string {
  const violations = sum(runs, (run) => run.violations.length)
  return table(
    ['in all runs', ''],
    [
      ['grants', sum(runs, ({ grants }) => grants)],
      ['grants under faults', number(underFaults(faults))],
      ['fault windows', sum(faults.filter(isFault), ({ times }) => times)],
      ['holds lost', sum(runs, ({ losses }) => losses)],
      ['stale writes refused', sum(runs, ({ refused }) => refused)],
      ['calls that failed', sum(runs, ({ failures }) => failures)],
      ['probes that were told that the store is down', sum(runs, ({ unavailable }) => unavailable)],
      ['violations', violations === '0' ? 'none' : `**${violations}**`],
      ['operations that Porcupine judged, too', sum(runs, ({ porcupine }) => porcupine ?? 0)],
      [`longest recovery (lease + 1 s: ${inSeconds(store.leaseMs + RECOVERY_MS)})`, longestOf(faults)],
      ['recoveries above the bound', sum(faults, ({ late }) => late)],
    ],
  )
}

function rowOf(figures: FaultFigures): string[] {
  const recovery = inSeconds(figures.recoveryMs)
  return [
    figures.fault,
    number(figures.times),
    number(figures.grants),
    figures.grantsBefore === 0 ? 'none' : number(figures.grantsBefore),
    number(figures.losses),
    number(figures.refused),
    number(figures.unavailable),
    inSeconds(figures.gapMs),
    figures.late > 0 ? `**${recovery}** (allowed: ${inSeconds(figures.boundMs)})` : recovery,
    figures.servedMs === undefined ? 'not kept' : inSeconds(figures.servedMs),
  ]
}

/** Each once. */
function pairsOf(runs: readonly KeptRun[]): string[] {
  const pairs = [...new Set(runs.flatMap((run) => run.pairs ?? []))].sort()
  if (pairs.length === 0) return []
  return ['These were made two at a time:', pairs.map((pair) => paragraph(`- ${pair}`)).join('\n')]
}

function missingOf({ missing = [] }: ProvedStore): string[] {
  if (missing.length === 0) return []
  return [
    '## Faults that are not made',
    table(
      ['fault', 'reason'],
      missing.map(({ fault, reason }) => [fault, reason]),
    ),
  ]
}

function excusesOf(runs: readonly KeptRun[]): string[] {
  const excuses = new Map(runs.flatMap((run) => run.excuses.map(({ fault, excuse }) => [fault, excuse])))
  if (excuses.size === 0) return []
  return [
    '## What the store cannot do better',
    paragraph(
      'These faults can end holds unnoticed. The page of the store says so. A hold that was asked for',
      'before the end of such a fault was not expected to exclude others until its holder learned of',
      `that, within a lease. ${sum(runs, ({ excused }) => excused)} holds met another hold in this way.`,
      ...longestOverlap(runs),
    ),
    table(
      ['fault', 'what the page says'],
      [...excuses].sort().map(([fault = '', excuse = '']) => [fault, excuse]),
    ),
  ]
}

function sum<T>(items: readonly T[], pick: (item: T) => number): string {
  return number(items.reduce((total, item) => total + pick(item), 0))
}

function longestOverlap(runs: readonly KeptRun[]): string[] {
  const longest = Math.max(0, ...runs.map(({ excusedMs = 0 }) => excusedMs))
  return longest === 0 ? [] : [`The longest time that both were believed was ${number(longest)} ms.`]
}

/** In bold where it was longer than it may be. */
function longestOf(faults: readonly FaultFigures[]): string {
  const longest = inSeconds(Math.max(0, ...faults.map(({ recoveryMs }) => recoveryMs)))
  return faults.some(({ late }) => late > 0) ? `**${longest}**` : longest
}
