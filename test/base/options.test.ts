import { describe, expect, it } from 'vitest'
import { checkOptions, nearestName } from '../../src/base/options.js'

const NAMES = { wait: true, lease: true, maxHold: true, signal: true } as const
const KNOWN = Object.keys(NAMES)

describe('checkOptions', () => {
  const check = (options: object): object => checkOptions(options, NAMES as never, "{ wait: '5s' }")

  it('gives options back as they are', () => {
    const options = { wait: '5s', lease: undefined }
    expect(check(options)).toBe(options)
    expect(check({})).toEqual({})
  })

  it.each([
    ['wiat', "There is no option 'wiat'; did you mean 'wait'?"],
    ['Lease', "There is no option 'Lease'; did you mean 'lease'?"],
    ['timeout', "There is no option 'timeout'; known are wait, lease, maxHold, signal"],
    // Names that every object has.
    ['constructor', "There is no option 'constructor'; known are wait, lease, maxHold, signal"],
    ['toString', "There is no option 'toString'; known are wait, lease, maxHold, signal"],
  ])('refuses %s', (name, message) => {
    expect(() => check({ [name]: 1 })).toThrow(message)
    expect(() => check({ [name]: undefined })).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
  })

  it('sees inherited names, which would count as well', () => {
    expect(() => check(Object.create({ wiat: 1 }))).toThrow("did you mean 'wait'?")
  })

  it.each([null, undefined, '5s', 5])('refuses %s, which is no object', (options) => {
    expect(() => check(options as never)).toThrow("options must be an object, such as { wait: '5s' }")
  })
})

it.each([
  ['wait', 'wait'],
  ['waite', 'wait'],
  ['maxhold', 'maxHold'],
  ['max_hold', 'maxHold'],
  ['singal', 'signal'],
  ['leese', 'lease'],
  ['ttl', undefined],
  ['w', undefined],
  ['', undefined],
])('the name nearest to %s is %s', (name, nearest) => {
  expect(nearestName(name, KNOWN)).toBe(nearest)
})
