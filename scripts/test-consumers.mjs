// npm run test:consumers: the packed library in real projects, each made from an empty folder with
// its tools from the npm registry: Jest, ts-jest, NestJS, webpack, rollup, vite, esbuild, Next.js,
// TypeScript 5. A part of them: `npm run test:consumers -- -t Next`.
import { ensureBuilt, ensureInstalled, runNode } from './ensure.mjs'

ensureInstalled()
ensureBuilt()
const args = ['node_modules/vitest/vitest.mjs', 'run', 'test/consumers', ...process.argv.slice(2)]
process.exitCode = await runNode(args, { env: { ...process.env, HOLDFAST_TEST_CONSUMERS: 'all' } })
