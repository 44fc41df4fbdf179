// Keeps the runs of simulated worlds (`npm run test:long -- --worlds N --report`), and writes
// docs/proof/worlds.md from them.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'

const RESULTS = new URL('results/worlds.json', import.meta.url)
const PAGE = new URL('../docs/proof/worlds.md', import.meta.url)

/**
 * Adds a run: `{ kind, first, worlds, failed, sum }`. One that goes on where another has ended is
 * joined to it.
 */
export function keepWorlds(run) {
  const runs = keptWorlds()
  const now = { ...run, commit: head(), date: new Date().toISOString().slice(0, 10) }
  const before = runs.findIndex((each) => goesOn(each, now))
  if (before === -1) runs.push(now)
  else runs[before] = joined(runs[before], now)
  writeFileSync(RESULTS, `${JSON.stringify(runs, null, 2)}\n`)
  writeFileSync(PAGE, pageOf(runs))
}

/** @returns {any[]} */
export function keptWorlds() {
  return existsSync(RESULTS) ? JSON.parse(readFileSync(RESULTS, 'utf8')) : []
}

/** @param {readonly any[]} runs */
export function pageOf(runs) {
  return `# Proof: simulated worlds

This page is written by \`npm run test:long -- --worlds 100000 --report\`.

A world has its own time and its own network. Clients of Holdfast take locks in it, while processes
pause and die, messages are lost, late or doubled, and clocks drift. All of that follows from the
seed. A world fails if two clients take holds for valid that exclude each other. It also fails if a
fence does not grow, if a waiter is not served after all faults have ended, or if something is left
in the store. In a quorum, members also restart, with their data or without.

${runs.length === 0 ? 'No run is kept.' : tableOf(runs)}

To repeat a world, name its seed: \`npm run test:long -- --worlds 1 --seed 42\`. Add \`--quorum\` for a
world with a quorum. Worlds that have failed are cases of the suite.
`
}

function tableOf(runs) {
  const row = (cells) => `| ${cells.join(' | ')} |`
  const names = ['store', 'seeds', 'worlds', 'grants', 'holds lost', 'failed', 'commit', 'date']
  return [
    row(names),
    row(names.map(() => '---')),
    ...runs.map(({ kind, first, worlds, failed, sum, commit, date }) =>
      row([
        kind,
        `${count(first)} to ${count(first + worlds - 1)}`,
        ...[worlds, sum.grants, sum.losses].map(count),
        failed.length === 0 ? 'none' : `seeds ${failed.join(', ')}`,
        `\`${commit}\``,
        date,
      ]),
    ),
  ].join('\n')
}

function goesOn(one, next) {
  return one.kind === next.kind && one.commit === next.commit && one.first + one.worlds === next.first
}

function joined(one, next) {
  const sum = { ...one.sum }
  for (const [name, more] of Object.entries(next.sum)) sum[name] = (sum[name] ?? 0) + more
  return {
    ...next,
    first: one.first,
    worlds: one.worlds + next.worlds,
    failed: [...one.failed, ...next.failed],
    sum,
  }
}

/** The commit. The records of runs, which a run adds to, do not make it another state. */
export function head() {
  const git = (...args) => execFileSync('git', args, { encoding: 'utf8' }).trim()
  const isDirty =
    git('status', '--porcelain', '--', 'src', 'scripts', 'proof', 'test', ':!proof/results') !== ''
  return `${git('rev-parse', '--short', 'HEAD')}${isDirty ? '-dirty' : ''}`
}

function count(number) {
  return number.toLocaleString('en')
}
