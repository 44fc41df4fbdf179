import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'

it('a run without servers says what it skips, why, and how to have it run', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-no-programs-'))
  const args = ['scripts/test.mjs', 'test/servers/redis.test.ts', 'test/base/backoff.test.ts']
  const output = execFileSync(process.execPath, args, {
    cwd: join(import.meta.dirname, '../..'),
    env: {
      ...process.env,
      PATH: folder,
      NO_COLOR: '1',
      HOLDFAST_TEST_REDIS_URL: '',
      HOLDFAST_TEST_INSTALL: '',
    },
    encoding: 'utf8',
  })
  rmSync(folder, { recursive: true })
  const reason = 'redis-server and redis-cli not installed (there is no apt-get)'
  expect(output).toContain(`Skipping the tests on redis: ${reason}`)
  expect(output).toContain('HOLDFAST_TEST_REDIS_URL=redis://127.0.0.1:6379 npm test')
  const skipped = /Skipped (\d+) tests on redis/.exec(output)?.[1]
  expect(Number(skipped)).toBeGreaterThan(0)
  expect(output.trim().split('\n').at(-1)).toMatch(
    new RegExp(`^[1-9]\\d* passed, 0 failed, ${skipped} skipped$`),
  )
})
