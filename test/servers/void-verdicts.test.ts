import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'

const root = join(import.meta.dirname, '../..')

it('a failure does not count where the process stood still, and counts at once elsewhere', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-void-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const [report, told] = [join(folder, 'report.json'), join(folder, 'void.txt')]
  const args = ['run', '--config', 'test/servers/void/vitest.config.ts', `--outputFile.json=${report}`]
  spawnSync(process.execPath, ['node_modules/vitest/vitest.mjs', ...args, '--reporter=json'], {
    cwd: root,
    env: { ...process.env, HOLDFAST_TEST_VOID: told },
  })
  const { testResults } = JSON.parse(readFileSync(report, 'utf8'))
  const [first, ...others] = testResults[0].assertionResults
  expect(first.status).toBe('passed')
  expect(others).toHaveLength(2)
  for (const each of others)
    expect(each).toMatchObject({ status: 'failed', failureMessages: [expect.stringContaining('attempt 1')] })
  expect(readFileSync(told, 'utf8')).toMatch(/^"fails, and its process stood still", .* \d+ ms: .*\n$/)
})
