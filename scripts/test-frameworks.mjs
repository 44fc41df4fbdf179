// npm run test:frameworks: the programs of docs/guides/frameworks with the real frameworks, also
// with those that npm test leaves out because they are large: Prisma and Next.js. A part of them:
// `npm run test:frameworks -- -t Prisma`.
import { ensureBuilt, ensureInstalled } from './ensure.mjs'
import { ensureFrameworks } from './frameworks.mjs'
import { runTests } from './run-tests.mjs'
import { ensureServers } from './servers.mjs'

ensureInstalled()
ensureBuilt()
const absent = [...(await ensureServers()), ...ensureFrameworks()]
for (const { name, explanation } of absent) console.log(`Skipping the tests on ${name}: ${explanation}`)
const [given, env] = [process.argv.slice(2), { HOLDFAST_TEST_FRAMEWORKS: 'all' }]
process.exitCode = await runTests(['test/frameworks'], { given, env, example: '-t Prisma' })
