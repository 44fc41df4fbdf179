import fc from 'fast-check'
import type { HistoryRecord, LockKind } from '../../proof/history.js'
import { held, read, unanswered, wrote } from './histories.js'

const MOST = 7
const time = fc.integer({ min: 0, max: 40 })
const length = fc.integer({ min: 0, max: 12 })

/** Some acquisitions take long, some holds are lost, and some are lost before they are known. */
function holds(kinds: readonly LockKind[], rest: fc.Arbitrary<object>): fc.Arbitrary<HistoryRecord[]> {
  const hold = fc.record({
    kind: fc.constantFrom(...kinds),
    from: time,
    took: length,
    lasts: fc.integer({ min: -6, max: 12 }),
    released: fc.option(length),
    jump: fc.integer({ min: -1, max: 3 }),
    rest,
  })
  return fc.array(hold, { minLength: 1, maxLength: MOST }).map((all) => {
    let fence = 10
    return all
      .toSorted((a, b) => a.from + a.took - b.from - b.took)
      .flatMap(({ kind, from, took, lasts, released, jump, rest: more }, index) => {
        const to = from + took
        const endsFrom = Math.max(from, to + lasts)
        fence += jump
        const endsBy = released === null ? null : Math.max(endsFrom, to) + released
        return held(`0/${index}`, { kind, fence, ...more, asked: [from, to], ended: [endsFrom, endsBy] })
      })
  })
}

export const mutexHistories = holds(['mutex'], fc.constant({}))
export const readWriteHistories = holds(['read', 'read', 'write'], fc.constant({}))
export const semaphoreHistories = holds(
  ['semaphore'],
  fc.record({ permits: fc.integer({ min: 1, max: 3 }), capacity: fc.constant(3) }),
)

/** A mutex with a waiter that is never served. */
export const waiterHistories = fc
  .tuple(mutexHistories, time, length)
  .map(([records, from, waited]) => [...records, unanswered('0/waiter', from, from + 2 * waited)])

interface Call {
  readonly fence: number
  readonly isWrite: boolean
  readonly from: number
  readonly at: number
  readonly to: number
  /** What is written down of it: the truth, a lie, or that nothing is known. */
  readonly told: 'truth' | 'lie' | 'nothing'
}

const call: fc.Arbitrary<Call> = fc
  .record({
    fence: fc.integer({ min: 1, max: 5 }),
    isWrite: fc.boolean(),
    from: time,
    before: length,
    after: length,
    told: fc.oneof(
      { weight: 10, arbitrary: fc.constant('truth' as const) },
      { weight: 1, arbitrary: fc.constant('lie' as const) },
      { weight: 2, arbitrary: fc.constant('nothing' as const) },
    ),
  })
  .map(({ from, before, after, ...rest }) => ({
    ...rest,
    from,
    at: from + before,
    to: from + before + after,
  }))

/** What a guarded register answers, and what is written down of it. */
export const registerHistories = fc
  .array(call, { minLength: 1, maxLength: MOST })
  .map((calls) => calls.toSorted((a, b) => a.at - b.at))
  .filter((calls) => calls.every((one) => calls.every((other) => one === other || !isBeside(one, other))))
  .map((calls) => {
    let highest = 0
    let value: string | null = null
    return calls.map(({ fence, isWrite, from, to, told }, index) => {
      const isAccepted = fence >= highest
      highest = Math.max(highest, fence)
      if (isAccepted && isWrite) value = `v${index}`
      const span = [from, told === 'nothing' ? null : to] as const
      const answer = told === 'nothing' ? null : isAccepted === (told === 'truth')
      if (isWrite) return wrote(`v${index}`, fence, span, answer)
      return read(answer ? value : null, fence, span, answer)
    })
  })

/** The calls of one hold come one after the other. */
function isBeside(one: Call, other: Call): boolean {
  return one.fence === other.fence && one.from <= other.to && other.from <= one.to
}
