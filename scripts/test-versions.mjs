// npm run test:versions: processes of the previous and of this version on one lock, on every store.
// `npm test` does the same on SQLite and Redis. Another version, by its tag or commit:
// `npm run test:versions -- --with v0.1.0`. A part of them: `npm run test:versions -- -t etcd`.
import { ensureBuilt, ensureInstalled } from './ensure.mjs'
import { ensurePrevious, previousName } from './previous.mjs'
import { runTests } from './run-tests.mjs'
import { ensureServers } from './servers.mjs'

const given = process.argv.slice(2)
const at = given.indexOf('--with')
if (at >= 0) process.env['HOLDFAST_TEST_PREVIOUS'] = given.splice(at, 2)[1] ?? ''

ensureInstalled()
ensureBuilt()
const absent = await ensureServers()
for (const { name, explanation } of absent) console.log(`Skipping the tests on ${name}: ${explanation}`)
const [missing] = ensurePrevious()
if (missing) {
  console.error(`There is no previous version to test with: ${missing.explanation}`)
  process.exit(1)
}
console.log(`The previous version is ${previousName()}.`)
// With files of its own, only those.
const files = given.some((each) => each.startsWith('test/')) ? [] : ['test/versions']
const env = { HOLDFAST_TEST_VERSIONS: 'all' }
process.exitCode = await runTests(files, { given, env, example: '-t etcd' })
