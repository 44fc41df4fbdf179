import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { root } from './sources.js'

it('a run whose filter matches nothing fails, and says so', () => {
  const args = ['scripts/test-consumers.mjs', '-t', 'no such title']
  const env = { ...process.env, NO_COLOR: '1' }
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: root, env, encoding: 'utf8' })
  expect(stderr).toContain('No test was run with -t no such title')
  expect(status).toBe(1)
})
