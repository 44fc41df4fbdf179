import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

it('the suite runs from the built package, under another test runner, on a store of its own', () => {
  const suite = fileURLToPath(new URL('third-party/suite.mjs', import.meta.url))
  // Without the mark that this process is a test runner's, which node:test would take for its own.
  const env = { ...process.env, NODE_TEST_CONTEXT: undefined, NODE_OPTIONS: undefined }
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--test-reporter', 'tap', suite], { env })
  expect(`${stdout}${stderr}`).toContain('# pass 5')
  expect(status).toBe(0)
}, 150_000)
