// Compiled by the test with the TypeScript compiler: the decorators here are those that users
// write.
import type { Holdfast } from '../../../src/primitives/holdfast.js'

export interface Watch {
  inside: number
  mostInside: number
}

async function stay(watch: Watch): Promise<void> {
  watch.mostInside = Math.max(watch.mostInside, ++watch.inside)
  await new Promise((resolve) => setImmediate(resolve))
  watch.inside--
}

export function ordersOf(locks: Holdfast, watch: Watch) {
  // Legacy decorators are not for class expressions.
  class Orders {
    static readonly made: string[] = []
    readonly paid: string[] = []

    @locks.locked((id: string) => `order:${id}`)
    async pay(id: string, amount: number): Promise<string> {
      await stay(watch)
      this.paid.push(`${id} ${amount}`)
      return `paid ${amount}`
    }

    @locks.locked((id: string) => `order:${id}`)
    async payTwice(id: string, amount: number): Promise<string[]> {
      return [await this.pay(id, amount), await this.pay(id, amount)]
    }

    @locks.locked('report', { wait: 0 })
    async report(): Promise<void> {
      await stay(watch)
      throw new RangeError(`${this.paid.length} orders are too many`)
    }

    @locks.locked((name: string) => name)
    static async make(name: string): Promise<number> {
      await stay(watch)
      // biome-ignore lint/complexity/noThisInStatic: that it is passed through is the subject
      return this.made.push(name)
    }

    @locks.locked('a')
    @locks.locked('b')
    async both(): Promise<string> {
      return 'inside both'
    }
  }
  return Orders
}
