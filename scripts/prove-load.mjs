// npm run prove:load [-- STORE …] [--only crowd,line,renewals,overload] [--small] [--report]: what a
// store and its clients do under much load. Takes some ten minutes per store.
import { ensureBuilt, ensureInstalled, runNode } from './ensure.mjs'
import { ensureServers } from './servers.mjs'

ensureInstalled()
ensureBuilt()
for (const { name, explanation } of await ensureServers())
  console.log(`Missing here: ${name}: ${explanation}`)
process.exitCode = await runNode(['proof/load/main.mjs', ...process.argv.slice(2)])
