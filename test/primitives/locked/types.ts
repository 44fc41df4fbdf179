// Compiled by the test, with both kinds of decorators: what has to be accepted, and what refused.
import type { Holdfast } from '../../../src/primitives/holdfast.js'

export function accepted(locks: Holdfast) {
  class Orders {
    @locks.locked((id: string) => `order:${id}`)
    async fewer(_id: string, _amount: number) {}

    @locks.locked((id: string, amount: number) => `order:${id}:${amount}`)
    async all(_id: string, _amount: number) {
      return 1
    }

    @locks.locked((id) => `order:${id}`)
    async untyped(_id: string) {}

    @locks.locked('fixed')
    async fixed(..._ids: string[]) {}

    @locks.locked(() => 'computed')
    async none() {}
  }
  return Orders
}

export function refused(locks: Holdfast) {
  class Orders {
    // @ts-expect-error: the method's first argument is a number
    @locks.locked((id: string) => `order:${id}`)
    async otherType(_id: number) {}

    // @ts-expect-error: the method has no argument
    @locks.locked((id: string) => `order:${id}`)
    async tooFew() {}

    // @ts-expect-error: the method returns no promise
    @locks.locked('fixed')
    sync() {}
  }
  return Orders
}
