// npm run judge -- FILE [--patience MS]: judges the history of a run (proof/history.ts) with Porcupine
// and with our own check. Ends with 0 if both find nothing, with 1 if one finds a violation, and with
// 2 if one could not judge.
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { ensureInstalled, root } from './ensure.mjs'
import { ensurePorcupine } from './porcupine.mjs'

const { values, positionals } = parseArgs({
  options: { patience: { type: 'string', default: '10000' } },
  allowPositionals: true,
})
const [file] = positionals
const patienceMs = Number(values.patience)
if (file === undefined || !(patienceMs > 0)) {
  console.error('Usage: npm run judge -- FILE [--patience MS]')
  process.exit(2)
}
ensureInstalled()
ensurePorcupine()
const { judge, describeJudgement } = await import(await bundled())
const judgement = judge(file, { patienceMs })
console.log(describeJudgement(judgement))
process.exitCode = { passed: 0, violated: 1, undecided: 2 }[judgement.verdict]

/** The judges are TypeScript, which older versions of Node do not load. */
async function bundled() {
  const { build } = await import('esbuild')
  const outfile = join(root, '.cache/judge/index.mjs')
  const entry = join(root, 'proof/judge/index.ts')
  // What it imports from scripts finds its files by its own place.
  const keepScripts = {
    name: 'scripts',
    setup: ({ onResolve }) =>
      onResolve({ filter: /\/scripts\// }, ({ path }) => ({
        path: pathToFileURL(join(root, path.slice(path.indexOf('scripts/')))).href,
        external: true,
      })),
  }
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    plugins: [keepScripts],
  })
  return pathToFileURL(outfile).href
}
