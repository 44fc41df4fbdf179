import { type FaultFigures, type KeptRun, summed } from './kept.js'
import { RECOVERY_MS, type RunResult } from './run.js'
import type { ProvedStore } from './store.js'
import { inSeconds, number, paragraph, table } from './text.js'

/** A few lines for the terminal. */
export function summaryOf(store: ProvedStore, run: RunResult, { doesCount }: KeptRun): string {
  const late = run.windows.filter(({ recoveryMs, boundMs }) => recoveryMs > boundMs)
  return [
    `${store.name}: ${run.grants} grants in ${run.seconds} s, ${run.windows.length} fault windows`,
    `${run.losses} holds lost, ${run.refused} stale writes refused, ${run.failures} calls failed`,
    `${run.unavailable} probes were told that the store is down`,
    `${run.violations.length} violations, ${late.length} late recoveries`,
    run.porcupine === null
      ? 'Judged by our own check only: Porcupine is not here.'
      : `Judged by our own check, and by Porcupine: ${run.porcupine} operations`,
    ...late.map(
      ({ faults, recoveryMs, boundMs }) => `  ${faults.join(' + ')}: ${recoveryMs} of ${boundMs} ms`,
    ),
    doesCount ? 'The run counts.' : 'The run does not count: too little happened.',
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
    totals(runs, faults, store),
    ...(violations.length === 0 ? [] : ['## Violations', violations.map((each) => `- ${each}`).join('\n')]),
    '## Faults',
    table(
      ['fault', 'times', 'grants', 'before healing', 'lost', 'refused', 'down', 'longest gap', 'recovery'],
      faults.map((figures) => rowOf(figures, store)),
    ),
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
    sum(faults, ({ times }) => times),
    sum(runs, ({ losses }) => losses),
    sum(runs, ({ refused }) => refused),
    sum(runs, ({ violations }) => violations.length),
    longestOf(faults, store),
    sum(faults, ({ late }) => late),
  ]
}

export const OVERVIEW = [
  ...['store', 'grants', 'fault windows', 'holds lost', 'refused writes', 'violations'],
  ...['longest recovery', 'above the bound'],
]

function totals(runs: readonly KeptRun[], faults: readonly FaultFigures[], store: ProvedStore): string {
  const violations = sum(runs, (run) => run.violations.length)
  return table(
    ['in all runs', ''],
    [
      ['grants', sum(runs, ({ grants }) => grants)],
      ['fault windows', sum(faults, ({ times }) => times)],
      ['fewest grants in a window', number(Math.min(...faults.map(({ fewestGrants }) => fewestGrants)))],
      ['holds lost', sum(runs, ({ losses }) => losses)],
      ['stale writes refused', sum(runs, ({ refused }) => refused)],
      ['probes that were told that the store is down', sum(runs, ({ unavailable }) => unavailable)],
      ['violations', violations === '0' ? 'none' : `**${violations}**`],
      ['operations that Porcupine judged, too', sum(runs, ({ porcupine }) => porcupine ?? 0)],
      ['longest recovery', longestOf(faults, store)],
      ['recoveries above the bound', sum(faults, ({ late }) => late)],
    ],
  )
}

function rowOf(figures: FaultFigures, store: ProvedStore): string[] {
  const recovery = recoveryOf(figures, store)
  return [
    figures.fault,
    number(figures.times),
    number(figures.grants),
    figures.grantsBefore === 0 ? 'none' : number(figures.grantsBefore),
    number(figures.losses),
    number(figures.refused),
    number(figures.unavailable),
    inSeconds(figures.gapMs),
    figures.late > 0 ? `**${recovery}**` : recovery,
  ]
}

function excusesOf(runs: readonly KeptRun[]): string[] {
  const excuses = new Map(runs.flatMap((run) => run.excuses.map(({ fault, excuse }) => [fault, excuse])))
  if (excuses.size === 0) return []
  return [
    '## What the store cannot do better',
    paragraph(
      'These faults can end holds unnoticed. The page of the store says so. A hold from before the end',
      'of such a fault was not expected to exclude others until its holder learned of the end, within',
      `a lease. The judge found ${sum(runs, ({ excusedViolations }) => excusedViolations)} violations that`,
      `this excuses; ${sum(runs, ({ excused }) => excused)} holds have to end earlier for that.`,
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

function longestOf(faults: readonly FaultFigures[], store: ProvedStore): string {
  const [longest] = faults.toSorted((one, other) => other.recoveryMs - one.recoveryMs)
  return longest ? recoveryOf(longest, store) : inSeconds(0)
}

/** With its bound, where that is more than a lease and a second: the machine was late itself. */
function recoveryOf({ recoveryMs, boundMs }: FaultFigures, { leaseMs }: ProvedStore): string {
  const bound = recoveryMs > leaseMs + RECOVERY_MS ? ` (bound ${inSeconds(boundMs)})` : ''
  return `${inSeconds(recoveryMs)}${bound}`
}
