import { it } from 'vitest'
import { expectCompiles } from '../project/compiler.js'

const CODE = `
import type { Hold } from 'holdfast'
import { HoldfastModule, InjectHoldfast, Locked, OncePerCluster } from 'holdfast/nestjs'
import { memory } from 'holdfast/memory'

const often = { atLeast: '1m', atMost: '1h' } as const

export class Accepted {
  @InjectHoldfast() readonly locks: unknown

  @Locked((id: string) => id, { client: undefined, wait: '5s' })
  async fewer(_id: string, _amount: number) {}

  @Locked((id) => String(id))
  async untyped(_id: string) {}

  @Locked('fixed')
  async fixed() {
    return 1
  }

  @OncePerCluster('a', often)
  async nothing() {}

  @OncePerCluster('a', often)
  async perhaps(_hold?: Hold) {}

  @OncePerCluster('a', { ...often, client: 'billing' })
  async hold(hold: Hold) {
    if (hold.isValid) return 'done'
    return undefined
  }
}

export class Refused {
  // @ts-expect-error: the method's first argument is a number
  @Locked((id: string) => id)
  async otherType(_id: number) {}

  // @ts-expect-error: the method returns no promise
  @Locked('fixed')
  sync() {}

  // @ts-expect-error: a misspelled option
  @Locked('fixed', { wiat: '5s' })
  async misspelled() {}

  // @ts-expect-error: its argument is the hold
  @OncePerCluster('a', often)
  async argument(_id: string) {}

  // @ts-expect-error: where it does not run, there is no number
  @OncePerCluster('a', often)
  async always() {
    return 1
  }
}

HoldfastModule.forRoot({ store: memory(), name: undefined, isGlobal: undefined, drain: undefined })
HoldfastModule.forRootAsync({ imports: undefined, inject: [], useFactory: async () => ({ store: 'memory:' }) })
// @ts-expect-error: no store
HoldfastModule.forRoot({ drain: '5s' })
`

it('the decorators and the module accept what is right, and nothing else', () =>
  expectCompiles(CODE, { experimentalDecorators: true, emitDecoratorMetadata: true }))
