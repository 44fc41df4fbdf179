import { expect, it } from 'vitest'
import type { ClaimRequest, Connection, Store } from '../../src/contract/store.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'

/** The store, and what lets the last claim lapse in it and then arrive a second time. */
function withLateCopy(store: Store) {
  let late = (): void => {}
  const connect: Store['connect'] = (client) => {
    const real = store.connect(client)
    const claim: Connection['claim'] = (request: ClaimRequest) => {
      late = () => {
        void real.release(request.resource, request.id)
        void real.claim(request)
      }
      return real.claim(request)
    }
    return new Proxy(real, {
      get: (target, key) => (key === 'claim' ? claim : Reflect.get(target, key)?.bind(target)),
    })
  }
  const wrapped: Store = { name: store.name, capabilities: store.capabilities, connect }
  return { wrapped, arrive: () => late() }
}

it('a hold whose extension finds another hold of the same id leaves nothing behind', async () => {
  const store = memory()
  const { wrapped, arrive } = withLateCopy(store)
  await using mine = new Holdfast(wrapped, { drain: 0 })
  await using theirs = new Holdfast(store, { drain: 0 })
  const hold = await mine.mutex('r').acquire()
  arrive()
  await expect(hold.extend('1h')).rejects.toMatchObject({ code: 'HOLD_LOST' })
  const next = await theirs.mutex('r').acquire({ wait: '20s' })
  expect(next.isValid).toBe(true)
})
