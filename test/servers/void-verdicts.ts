// A test must pass even if its processes pause for a second in all. If the machine let this process
// stand still for longer, a failure says nothing about the code: the test is run again, and the run
// says so. A failure without such a pause counts at once. So does a wait of many seconds that was in
// vain, unless its process stood still for half of it: somebody was forgotten.
import { appendFileSync } from 'node:fs'
import { beforeEach, type TestError } from 'vitest'

const LONGEST_PAUSE_MS = 1000
/** How a wait that was in vain is told; see `eventually` and `inTime`. */
const IN_VAIN = /^Not within (\d+) ms/
/** vitest.config.ts has the same number, as vitest reads it before this file can act. */
const REPEATS = 3
const TICK_MS = 100
/** Less is no pause: timers are never exact. */
const SHORTEST_PAUSE_MS = 50

let pausedMs = 0
let tickedAt = performance.now()

setInterval(() => {
  pausedMs += pauseUntil(performance.now())
  tickedAt = performance.now()
}, TICK_MS).unref()

function pauseUntil(now: number): number {
  const lateMs = now - tickedAt - TICK_MS
  return lateMs < SHORTEST_PAUSE_MS ? 0 : lateMs
}

function totalMs(): number {
  return pausedMs + pauseUntil(performance.now())
}

beforeEach(({ task }) => {
  // It says so itself: it blocks its own process.
  if (task.retry === 0) return
  const beforeMs = totalMs()
  const condition = ({ message }: TestError): boolean => {
    const ms = Math.round(totalMs() - beforeMs)
    const isVoid = ms >= Math.max(LONGEST_PAUSE_MS, Number(IN_VAIN.exec(message)?.[1] ?? 0) / 2)
    if (isVoid) tell(`"${task.name}", as its process stood still for ${ms} ms: ${message}`)
    return isVoid
  }
  Object.assign(task, { retry: { count: REPEATS, condition } })
})

/** `npm test` repeats them at its end. */
function tell(verdict: string): void {
  console.warn(`Void: ${verdict}`)
  const file = process.env['HOLDFAST_TEST_VOID']
  if (file) appendFileSync(file, `${verdict.split('\n')[0]}\n`)
}
