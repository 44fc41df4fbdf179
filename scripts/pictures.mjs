// Takes the pictures of docs/pictures again, of real locks that are contended for. Needs Chromium:
// see scripts/servers.mjs.
import { join } from 'node:path'
import { ensureBuilt, ensureInstalled, root, runNode } from './ensure.mjs'

ensureInstalled()
ensureBuilt()
const folder = join(root, 'docs/pictures')
const env = { ...process.env, HOLDFAST_PICTURES: folder }
const args = ['node_modules/vitest/vitest.mjs', 'run', 'test/server/ui/pictures.test.ts']
process.exitCode = await runNode(args, { env })
