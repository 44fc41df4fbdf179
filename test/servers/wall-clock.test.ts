import { execFileSync } from 'node:child_process'
import { afterAll, describe, expect, it } from 'vitest'
import { DRIFT_BEGINS_NS, WallClock } from './wall-clock.js'

const clock = new WallClock()
afterAll(() => clock.dispose())
const skipped = clock.obstacle === null ? '' : ` (skipped: ${clock.obstacle})`
const records = new URL('../../proof/own-clock.mjs', import.meta.url).href
const READ = `
  import { now } from '${records}'
  console.log(process.hrtime.bigint() + ' ' + Date.now() * 1e6 + ' ' + now() * 1000)`
/** The clock of the records has microseconds, the wall clock milliseconds. */
const ROUNDING_NS = 1e6

const realNs = (): number => Number(process.hrtime.bigint())

interface Reading {
  /** When the process was started, and when it had ended. */
  readonly before: number
  readonly after: number
  readonly monotonic: number
  readonly wall: number
  readonly recorded: number
}

/** A new process reads its clocks. */
function read(): Reading {
  const before = realNs()
  const args = ['--input-type=module', '-e', READ]
  const text = execFileSync(process.execPath, args, {
    env: { ...process.env, ...clock.env },
    encoding: 'utf8',
  })
  const [monotonic = 0, wall = 0, recorded = 0] = text.split(' ').map(Number)
  return { before, after: realNs(), monotonic, wall, recorded }
}

/** The latest moment at which the drift has begun. */
function drift(rate: number): number {
  clock.drift((rate - 1) * 1e6)
  return realNs() + Number(DRIFT_BEGINS_NS)
}

function expectRecorded({ before, after, recorded }: Reading): void {
  expect(recorded).toBeGreaterThan(before - ROUNDING_NS)
  expect(recorded).toBeLessThan(after + ROUNDING_NS)
}

describe.skipIf(clock.obstacle !== null)(`a clock that drifts${skipped}`, () => {
  it('runs faster, keeps what it has gained, and leaves the clock of the records alone', () => {
    const begun = drift(1.5)
    let fast = read()
    while (fast.before < begun) fast = read()
    expectRecorded(fast)
    expect(fast.monotonic).toBeGreaterThan(begun + 1.5 * (fast.before - begun) - ROUNDING_NS)
    const ended = drift(1)
    let steady = read()
    while (steady.before < ended) steady = read()
    expectRecorded(steady)
    const gained = 0.5 * (fast.before - begun)
    expect(steady.monotonic - steady.after).toBeGreaterThan(gained - (steady.after - steady.before))
    expect(steady.wall - fast.wall).toBeGreaterThan(steady.before - fast.after)
  })

  it('is set right', () => {
    const begun = drift(2)
    while (realNs() < begun) read()
    clock.setRight()
    const ended = realNs() + Number(DRIFT_BEGINS_NS)
    let right = read()
    while (right.before < ended) right = read()
    expect(right.monotonic).toBeGreaterThan(right.after)
    const wall = (): number => Date.now() * 1e6
    const [earliest, { wall: told }, latest] = [wall(), read(), wall()]
    expect(told).toBeGreaterThan(earliest - ROUNDING_NS)
    expect(told).toBeLessThan(latest + ROUNDING_NS)
    clock.set(0)
  })

  it('runs slower', () => {
    const before = read()
    const begun = drift(0.5)
    const slow = read()
    expectRecorded(slow)
    const passed = begun - before.before + 0.5 * Math.max(0, slow.after - begun)
    expect(slow.monotonic - before.monotonic).toBeLessThan(passed + ROUNDING_NS)
    clock.drift(0)
  })
})
