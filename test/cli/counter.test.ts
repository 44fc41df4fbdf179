import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { Bench } from './processes.js'

function readFences(bench: Bench): number[] {
  return readFileSync(bench.path('ledger'), 'utf8').trimEnd().split('\n').map(Number)
}

function isStrictlyIncreasing(fences: number[]): boolean {
  return fences.every((fence, index) => index === 0 || fence > (fences[index - 1] ?? Infinity))
}

test('4 processes × 250 increments of an unprotected counter file: exactly 1000', async () => {
  const bench = new Bench()
  writeFileSync(bench.path('counter'), '0')
  const args = [
    'test/cli/counter-worker.mjs',
    bench.store,
    bench.path('counter'),
    bench.path('ledger'),
    '250',
  ]
  const outcomes = await Promise.all(Array.from({ length: 4 }, () => bench.node(args).done))
  expect(outcomes.map(({ code }) => code)).toEqual([0, 0, 0, 0])
  expect(readFileSync(bench.path('counter'), 'utf8')).toBe('1000')
  expect(readFences(bench)).toHaveLength(1000)
  expect(isStrictlyIncreasing(readFences(bench))).toBe(true)
}, 60_000)

test('4 × 5 increments by shell scripts under `holdfast run`: exactly 20', async () => {
  const bench = new Bench()
  writeFileSync(bench.path('counter'), '0\n')
  const script = `
    read value <${bench.path('counter')}
    sleep 0.01
    echo $((value + 1)) >${bench.path('counter')}
    echo $HOLDFAST_FENCE >>${bench.path('ledger')}`
  const five = async () => {
    for (let i = 0; i < 5; i++) expect((await bench.script('counter', [], script).done).code).toBe(0)
  }
  await Promise.all([five(), five(), five(), five()])
  expect(readFileSync(bench.path('counter'), 'utf8')).toBe('20\n')
  expect(readFences(bench)).toHaveLength(20)
  expect(isStrictlyIncreasing(readFences(bench))).toBe(true)
}, 60_000)
