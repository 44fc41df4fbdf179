import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { prometheus } from '../../src/observe/prometheus/index.js'
import { root } from '../project/sources.js'
import { stageOf } from './dashboards.js'
import { LockClient } from './lock-api-cases.js'

it('metrics show the lines, and the figures of this process below', async () => {
  const metrics = prometheus()
  onTestFinished(() => metrics.stop())
  const { view, get } = stageOf({ allowLocks: true, metrics })
  const client = new LockClient(view)
  const { status } = await client.acquire('a', { lease: '1m' })
  expect(status).toBe(201)
  const text = await (await get('metrics')).text()
  expect(text).toMatch(/^holdfast_line_holds\{kind="lock"\} 1$/m)
  expect(text).toMatch(/^holdfast_wait_duration_seconds_count\{.*outcome="granted".*\} 1$/m)
  // The client of the lock API has it now: this process neither holds it nor has lost it.
  expect(text).toMatch(/^holdfast_held\{.*\} 0$/m)
  expect(text).toMatch(/^holdfast_hold_duration_seconds_count\{.*outcome="handed-over".*\} 1$/m)
  expect(text).not.toMatch(/^holdfast_lost_total\{.*\} [1-9]/m)
  const names = [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name)
  expect(new Set(names).size).toBe(names.length)
})

it('metrics of the server are those that the page lists', async () => {
  const { get } = stageOf()
  const shown = [...(await (await get('metrics')).text()).matchAll(/^# TYPE (\S+) (\S+)$/gm)]
  const page = readFileSync(join(root, 'docs/server.md'), 'utf8')
  const listed = [...page.matchAll(/^\| `(holdfast_\w+)` \| (\w+) \|/gm)]
  const facts = (found: RegExpMatchArray[]) => found.map(([, name, type]) => `${name} ${type}`)
  expect(facts(listed)).toEqual(facts(shown))
})
