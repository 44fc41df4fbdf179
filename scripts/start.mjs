// npm start: the flash-sale demonstration, from a fresh clone.
import { ensureBuilt, ensureInstalled, runNode } from './ensure.mjs'

ensureInstalled()
ensureBuilt()
process.exitCode = await runNode(['demo/flash-sale/main.mjs', ...process.argv.slice(2)])
