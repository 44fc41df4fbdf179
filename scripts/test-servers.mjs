// npm run test:servers: the conformance suite on several versions of each server; the outcome is the
// second table of docs/runtimes.md. Newer servers are fetched into .cache/servers. A MySQL that runs
// already: HOLDFAST_TEST_MYSQL_URL=mysql://… npm run test:servers. With --all it runs all cases. A
// part of it: `npm run test:servers -- -t Redis`.
import { ensureBuilt, ensureInstalled } from './ensure.mjs'
import { ensureNewer } from './newer-servers.mjs'
import { ensurePeer } from './peers.mjs'
import { runTests } from './run-tests.mjs'
import { ensureServers } from './servers.mjs'

const given = process.argv.slice(2).filter((argument) => argument !== '--all')
const isAll = given.length < process.argv.length - 2
ensureInstalled()
ensureBuilt()
const absent = [...(await ensureServers()), ensurePeer('valkey'), ...ensureNewer()].filter(Boolean)
for (const { name, explanation } of absent) console.log(`Skipping the tests on ${name}: ${explanation}`)

const env = { HOLDFAST_TEST_TABLE: 'servers', ...(isAll ? { HOLDFAST_TEST_ALL: '1' } : {}) }
const example = "-t 'Redis of Debian 13'"
process.exitCode = await runTests(['test/runtimes/servers.test.ts'], { given, env, example })
