import { describe, expect, it } from 'vitest'
import { conformanceBehaviours, conformanceCases } from '../../src/testing/index.js'

const behaviours = conformanceBehaviours()

describe('the list of behaviours', () => {
  it('has every line from 1 to 123, once', () => {
    const numbers = behaviours.map(({ number }) => number)
    expect(numbers).toEqual(Array.from({ length: 123 }, (_, index) => index + 1))
  })

  it.each(behaviours)('$number is shown by a case or says why not: $text', ({ cases, reason }) => {
    if (cases.length === 0) expect(reason).toBeTruthy()
    else expect(reason).toBeUndefined()
  })

  it('is all that the cases refer to', () => {
    const known = new Set(behaviours.map(({ number }) => number))
    const cases = conformanceCases({
      name: 'none',
      open: async () => Promise.reject(new Error('not opened')),
    })
    for (const { title, behaviours: shown } of cases)
      for (const number of shown) expect(known, title).toContain(number)
    expect(new Set(cases.map(({ title }) => title)).size).toBe(cases.length)
  })
})
