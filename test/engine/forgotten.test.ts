import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const SCRIPT = fileURLToPath(new URL('forgotten.mjs', import.meta.url))

function forget(debug: string): Promise<{ stdout: string; stderr: string }> {
  const env = { ...process.env, NODE_DEBUG: debug }
  return promisify(execFile)(process.execPath, ['--expose-gc', SCRIPT], { env })
}

it('warns once of a hold that was forgotten, and lets its lease end', { timeout: 60_000 }, async () => {
  const { stdout, stderr } = await forget('')
  expect(stdout).toBe('ran true true true\nwatched is held\na lost leadership is collected\nwatched aborts\n')
  const warnings = stderr.match(/\[HOLDFAST_FORGOTTEN_HOLD\] HoldfastWarning: The hold of '\w+'/g)
  expect(warnings?.map((text) => text.split("'")[1]).sort()).toEqual(['forgotten'])
  expect(stderr).toMatch(/\(nightly\) was forgotten/)
  expect(stderr).not.toMatch(/acquired here/)
})

it('tells where it was acquired, if NODE_DEBUG asks for it', { timeout: 60_000 }, async () => {
  const { stderr } = await forget('holdfast')
  expect(stderr).toMatch(/acquired here[\s\S]*forgotten\.mjs/)
})
