import { describe, expect, it } from 'vitest'
import { nameOf, resourceOf } from '../../src/web-locks/names.js'
import { ODD_NAMES } from './cases/names.js'

describe('the resource of a name', () => {
  it('is the name itself wherever a store can keep it, and never that of another name', () => {
    for (const name of ['a', '"', 'order:42', '😀', ' ', '\uFFFF']) expect(resourceOf(name)).toBe(name)
    expect(new Set(ODD_NAMES.map(resourceOf)).size).toBe(ODD_NAMES.length)
    for (const name of ODD_NAMES) expect(nameOf(resourceOf(name))).toBe(name)
  })

  it('leads back only from what is an escape', () => {
    // A mutex may have such names: they are shown as they are.
    for (const resource of ['-', '-foo', '-"', '-"a"', '-42', '-"\\u0061"'])
      expect(nameOf(resource)).toBe(resource)
  })
})
