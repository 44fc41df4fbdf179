import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { missingRuntime, RUNTIMES } from '../../scripts/runtimes.mjs'
import { now } from '../../src/testing/clock.js'
import { root } from '../project/sources.js'

const PROGRAM = join(root, 'test/runtimes/clock.mjs')

// The conformance suite compares the times of several processes. On Bun and Deno the usual clock
// begins with each process, so a lock would look broken, or a broken one fine.
describe('the clock of the conformance suite', () => {
  for (const name of ['node', 'bun', 'deno'] as const) {
    const missing = missingRuntime(name)
    const title = `is that of the machine with ${name}`
    it.skipIf(missing !== null)(missing ? `${title} (skipped: ${missing})` : title, () => {
      const { execPath, execArgv } = RUNTIMES[name]
      const before = now()
      const told = Number(execFileSync(execPath, [...execArgv, PROGRAM], { encoding: 'utf8' }))
      expect(told).toBeGreaterThan(before)
      expect(told).toBeLessThan(now())
    })
  }
})
