// npm run docs: builds the documentation site into .cache/site and checks it. With --base /PATH/ it
// is for that path of a host, and with --serve it can be seen on this machine afterwards.
// Its tools are in site/, with a lock file of their own, and are installed when they are missing.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { check } from '../site/check.mjs'
import { llms, llmsFull } from '../site/llms.mjs'
import { FOLDERS, listOfDecisions, onSite, plain, withLinksToPages, withSections } from '../site/pages.mjs'
import { serve } from '../site/serve.mjs'
import { LIST_OF_DECISIONS, placeOf, REFERENCE, SIDEBAR } from '../site/sidebar.mjs'
import { ensureInstalled, root, runNode } from './ensure.mjs'

const { values } = parseArgs({
  options: { base: { type: 'string', default: '/' }, serve: { type: 'boolean', default: false } },
})
const base = values.base
if (!/^\/(.*\/)?$/.test(base)) throw new Error(`--base must begin and end with a slash: ${base}`)
const VITEPRESS = 'site/node_modules/vitepress/bin/vitepress.js'
const source = join(root, '.cache/site-pages')
const result = join(root, '.cache/site')

ensureInstalled()
ensureInstalled('site')
for (const folder of [source, result]) rmSync(folder, { recursive: true, force: true })
writePages()
await run('The API reference', ['site/reference.mjs', join(source, 'reference')])
finishReference()
await run('VitePress', [VITEPRESS, 'build', 'site'])
putBeside()

const findings = check(result, base)
for (const finding of findings) console.error(finding)
if (findings.length > 0) process.exit(1)
console.log(`The site is in .cache/site: ${SIDEBAR.flatMap(({ items }) => items).length + 1} pages.`)

if (values.serve) {
  // The steps above left theirs, which keep this process alive while a child ends.
  for (const signal of ['SIGINT', 'SIGTERM']) process.removeAllListeners(signal)
  const { url } = await serve(result, { base, port: 4173 })
  console.log(`See it at ${url}${base} until you press Ctrl-C.`)
}

async function run(what, args) {
  const env = { ...process.env, HOLDFAST_DOCS_BASE: base }
  if ((await runNode(args, { env })) === 0) return
  console.error(`${what} could not be built: see above.`)
  process.exit(1)
}

function writePages() {
  const pages = SIDEBAR.flatMap(({ items }) => items.map(({ page }) => page))
  const generated = [LIST_OF_DECISIONS, ...REFERENCE.map(({ page }) => page)]
  for (const page of pages) if (!generated.includes(page)) write(placeOf(page), onSite(readFrom(page), page))
  write(placeOf(LIST_OF_DECISIONS), listOfDecisions())
  write('index.md', withSections(readFrom('site/index.md'), readFrom))
  for (const folder of FOLDERS) cpSync(join(root, folder), join(source, folder), { recursive: true })
  cpSync(join(root, 'site/public'), join(source, 'public'), { recursive: true })
}

function finishReference() {
  // A list of the modules, which the sidebar is already.
  rmSync(join(source, 'reference/README.md'))
  for (const { page } of REFERENCE) {
    const text = withLinksToPages(readFileSync(join(source, page), 'utf8'), page)
    // The class Holdfast has the id that the title of its page would get.
    write(page, text.replace(/^# .*$/m, '$& {#module}'))
  }
}

/** The plain Markdown of each page, and what it links to. */
function putBeside() {
  const read = (place) => plain(readFileSync(join(source, place), 'utf8'))
  for (const place of readdirSync(source, { recursive: true, encoding: 'utf8' }))
    if (place.endsWith('.md')) writeFileSync(join(result, place), read(place))
  for (const folder of FOLDERS) cpSync(join(root, folder), join(result, folder), { recursive: true })
  writeFileSync(join(result, 'llms.txt'), llms(read))
  writeFileSync(join(result, 'llms-full.txt'), llmsFull(read))
}

function readFrom(page) {
  return readFileSync(join(root, page), 'utf8')
}

function write(place, text) {
  const file = join(source, place)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}
