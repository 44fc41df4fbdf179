// Compiles src/ to dist/. The new build replaces the old one only when it is complete, and nothing
// of a deleted source stays behind.
//
//   dist/cjs     CommonJS and the type declarations. Node runs this, whether it is required or
//                imported, so a process that does both has one copy of every class and of all state.
//   dist/import  one module for each entry point, which exports dist/cjs to ES modules.
//   dist/esm     ES modules for bundlers (the condition `module`), which choose one format for the
//                whole bundle.
//   dist/ui      the page of the dashboard, in three files that its server sends as they are.
//
// The entry points are those of `exports` in package.json.
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
// Beside dist, so that the paths in the source maps stay right.
const fresh = join(root, `dist-${process.pid}`)
const tsc = join(root, 'node_modules/typescript/bin/tsc')

mkdirSync(fresh, { recursive: true })
try {
  compile('tsconfig.build.json', 'cjs')
  compile('tsconfig.bundlers.json', 'esm')
  writeFileSync(join(fresh, 'cjs/package.json'), '{ "type": "commonjs" }\n')
  chmodSync(join(fresh, 'cjs/cli/main.js'), 0o755)
  writeImports()
  await bundlePage()
  rmSync(join(root, 'dist'), { recursive: true, force: true })
  renameSync(fresh, join(root, 'dist'))
} finally {
  rmSync(fresh, { recursive: true, force: true })
}

/** esbuild takes the types away unseen, so they are checked before. */
async function bundlePage() {
  const page = join(root, 'src/server/ui')
  runTsc('-p', page, '--noEmit')
  await build({
    entryPoints: [
      { in: join(page, 'main.tsx'), out: 'app' },
      { in: join(page, 'app.css'), out: 'app' },
    ],
    outdir: join(fresh, 'ui'),
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    legalComments: 'none',
    logLevel: 'warning',
  })
  copyFileSync(join(page, 'index.html'), join(fresh, 'ui/index.html'))
}

function compile(project, folder) {
  runTsc('-p', join(root, project), '--outDir', join(fresh, folder))
}

function runTsc(...args) {
  const { status } = spawnSync(process.execPath, [tsc, ...args], { stdio: 'inherit' })
  // Thrown, so that the unfinished build is removed.
  if (status !== 0) throw new Error(`tsc ended with ${status}`)
}

function writeImports() {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  for (const entry of Object.values(exports)) {
    if (typeof entry === 'string') continue
    const from = entry.import.default
    const to = relative(dirname(from), entry.default.default)
    mkdirSync(dirname(inFresh(from)), { recursive: true })
    const { default: main, ...named } = createRequire(inFresh(from))(to)
    const names = Object.keys(named)
    // Node takes the whole CommonJS module for its default export, so that one goes by its name.
    const isMain = (name) => main !== undefined && named[name] === main
    const mains = names.filter(isMain).map((name) => `${name} as default`)
    if (main !== undefined && mains.length !== 1)
      throw new Error(`${to}: export the default by one name, too`)
    writeFileSync(inFresh(from), `export { ${[...mains, ...names].join(', ')} } from '${to}'\n`)
    const defaults = mains.map((each) => `export { ${each} } from '${to}'\n`)
    writeFileSync(inFresh(entry.import.types), `export * from '${to}'\n${defaults.join('')}`)
  }
}

function inFresh(path) {
  return join(fresh, relative('dist', path))
}
