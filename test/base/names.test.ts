import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkName, MAX_NAME_BYTES } from '../../src/base/names.js'

const refused = expect.objectContaining({ code: 'INVALID_ARGUMENT' })

describe('checkName', () => {
  it.each([' ', 'a/b', 'A', '\0', 'ü', '🔒', '../..', "'; drop table", '{x}'])(
    'takes %j as it is',
    (name) => {
      expect(checkName(name, 'The resource')).toBe(name)
    },
  )

  it('takes every text that has a UTF-8 form', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', minLength: 1 }), (name) => {
        expect(checkName(name, 'The resource')).toBe(name)
      }),
    )
  })

  it.each(['', undefined, null, 7, {}, ['a']])('refuses %j', (name) => {
    expect(() => checkName(name, 'The resource')).toThrow(refused)
  })

  it('refuses half of a surrogate pair, which a store would turn into another name', () => {
    expect(() => checkName('a\ud800', 'The resource')).toThrow(/surrogate/)
    expect(() => checkName('\udc00b', 'The resource')).toThrow(refused)
  })

  it('counts bytes, not characters', () => {
    expect(checkName('a'.repeat(MAX_NAME_BYTES), 'The resource')).toHaveLength(MAX_NAME_BYTES)
    expect(() => checkName('a'.repeat(MAX_NAME_BYTES + 1), 'The resource')).toThrow(refused)
    expect(() => checkName('ü'.repeat(MAX_NAME_BYTES / 2 + 1), 'The resource')).toThrow(
      `The resource has ${MAX_NAME_BYTES + 2} bytes`,
    )
  })
})
