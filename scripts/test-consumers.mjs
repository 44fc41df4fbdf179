// npm run test:consumers: the packed library in real projects, each made from an empty folder with
// its tools from the npm registry: Jest, ts-jest, NestJS, webpack, rollup, vite, esbuild, Next.js,
// TypeScript 5. A part of them: `npm run test:consumers -- -t Next`.
import { ensureBuilt, ensureInstalled } from './ensure.mjs'
import { runTests } from './run-tests.mjs'

ensureInstalled()
ensureBuilt()
const [given, env] = [process.argv.slice(2), { HOLDFAST_TEST_CONSUMERS: 'all' }]
process.exitCode = await runTests(['test/consumers'], { given, env, example: '-t Next' })
