import { describe, expect, it } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'
import { Lock, LockManager } from '../../src/web-locks/index.js'
import { hold, siteOn } from './site.js'

/** What idlharness.js of the web-platform-tests asks of an interface. */
describe.each([
  { type: LockManager, name: 'LockManager', members: ['query', 'request'] },
  { type: Lock, name: 'Lock', members: ['fence', 'mode', 'name', 'signal'] },
])('the interface $name', ({ type, name, members }) => {
  it('has the shape that Web IDL gives it', () => {
    expect([type.name, type.length]).toEqual([name, 0])
    expect(Object.keys(type.prototype).sort()).toEqual(members)
    expect(Object.getOwnPropertyDescriptor(type, 'prototype')).toMatchObject({
      writable: false,
      enumerable: false,
    })
    expect(Object.prototype.toString.call(type.prototype)).toBe(`[object ${name}]`)
  })

  it('cannot be made from nothing', () => {
    expect(() => Reflect.construct(type, [])).toThrow(TypeError)
    expect(() => Reflect.construct(type, ['a', 'exclusive', {}])).toThrow(TypeError)
  })
})

describe('the members', () => {
  it('of a LockManager are operations that reject rather than throw', async () => {
    const { request, query } = LockManager.prototype
    expect([request.length, query.length]).toEqual([2, 0])
    for (const stranger of [undefined, {}, LockManager.prototype]) {
      await expect(Reflect.apply(request, stranger, ['a', () => {}])).rejects.toThrow(TypeError)
      await expect(Reflect.apply(query, stranger, [])).rejects.toThrow(TypeError)
    }
  })

  it('of a Lock are attributes of the prototype that nobody can set', async () => {
    const store = memory()
    const { lock, work } = await hold(siteOn(() => store).locks, 'a', { mode: 'shared' })
    expect(lock).toBeInstanceOf(Lock)
    expect(Object.keys(lock)).toEqual([])
    for (const member of ['name', 'mode']) {
      const { get, set } = Object.getOwnPropertyDescriptor(Lock.prototype, member) ?? {}
      expect(set).toBeUndefined()
      expect(() => Reflect.apply(get as () => string, {}, [])).toThrow(TypeError)
    }
    expect([lock.name, lock.mode, `${lock}`]).toEqual(['a', 'shared', '[object Lock]'])
    work.resolve(null)
    // It stays what it was.
    expect([lock.name, lock.mode]).toEqual(['a', 'shared'])
  })

  it('a LockManager takes a client, nothing else', async () => {
    await using client = new Holdfast(memory())
    expect(String(new LockManager(client))).toBe('[object LockManager]')
    for (const stranger of [null, {}, memory()])
      expect(() => Reflect.construct(LockManager, [stranger])).toThrow(/takes a client/)
  })
})
