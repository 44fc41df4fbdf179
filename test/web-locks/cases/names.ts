import { expect } from 'vitest'
import { neverCalled, onEachStore, rejectsWithDom } from '../site.js'

/** What a browser takes, and a store might not. */
export const ODD_NAMES = [
  '',
  'abc\x00def',
  '\uD800',
  '\uDC00',
  '\uDC00\uD800',
  'a\uD800b"\\',
  '\uFFFF',
  '"',
  '😀',
  ' ',
]

onEachStore('resource names', (newSite, it) => {
  it('DOMString: any text comes back as it was', async () => {
    const { locks } = newSite()
    for (const name of ODD_NAMES) {
      await locks.request(name, async (lock) => {
        expect(lock.name).toBe(name)
        expect((await locks.query()).held.map((held) => held.name)).toEqual([name])
      })
    }
  })

  it('names that are not valid UTF-16 are not mangled', async () => {
    const { locks } = newSite()
    const all = [...ODD_NAMES, '\uFFFD']
    // All at once: no two of them are the same lock.
    const nested = (rest: string[]): Promise<number> | number =>
      rest[0] === undefined ? all.length : locks.request(rest[0], () => nested(rest.slice(1)))
    expect(await nested(all)).toBe(all.length)
  })

  it('cannot start with "-"', async () => {
    const { locks } = newSite()
    for (const name of ['-', '-foo', '-""'])
      await rejectsWithDom(locks.request(name, neverCalled), 'NotSupportedError')
    expect(await locks.request('x-anything', (lock) => lock.name)).toBe('x-anything')
  })

  it('that no store can keep are refused', async () => {
    const { locks } = newSite()
    await expect(locks.request('x'.repeat(8193), neverCalled)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    })
    expect(await locks.request('x'.repeat(8192), () => 'fits')).toBe('fits')
  })
})
