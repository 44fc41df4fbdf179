import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { Bench } from '../cli/processes.js'

const DEMO = 'demo/striped-stock/main.mjs'

test('2000 pieces in 100 segments: all sold, no segment oversold, every count in the middle complete', async () => {
  const bench = new Bench()
  const { code, stdout, stderr } = await bench.node([DEMO]).done
  expect(stderr).toBe('')
  expect(stdout).toContain('Sold 2000 of 2000:')
  const counts = [...stdout.matchAll(/(\d+) sold \+ (\d+) left = 2000\./g)]
  expect(counts).toHaveLength(3)
  expect(counts.some(([, sold, left]) => Number(sold) > 0 && Number(left) > 0)).toBe(true)
  expect(stdout).toMatch(/100 segments: pieces +2000 sold to 2000 buyers, 0 left +as it should be/)
  expect(stdout).toMatch(/100 segments: oversold +0 of 100 +as it should be/)
  expect(stdout).toMatch(/[\d.]+ times as many as under one lock/)
  expect(stdout).not.toMatch(/WRONG|\r/)
  expect(code).toBe(0)
  expect(readdirSync(bench.folder)).toEqual([])
}, 120_000)

test('Ctrl-C ends it and leaves no file behind', async () => {
  const bench = new Bench()
  const demo = bench.node([DEMO])
  await demo.wrote(/For comparison/)
  demo.kill('SIGINT')
  expect((await demo.done).code).toBe(130)
  expect(readdirSync(bench.folder)).toEqual([])
}, 60_000)
