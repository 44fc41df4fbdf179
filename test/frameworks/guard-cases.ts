import { expect, it } from 'vitest'
import type { Hold } from '../../src/primitives/hold.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'

/** A program of the page: in one transaction it checks the fence and sets the state of an order. */
export interface GuardedProgram {
  setState(hold: Hold, id: number, state: string): Promise<unknown>
}

interface Setting {
  program(): GuardedProgram
  /** The state of order 42. */
  stateOf(): Promise<string>
  /** A call of `setState` that passes the check, and then throws. */
  failingWrite(hold: Hold): Promise<unknown>
}

/** The tests of every program that has the guard inside its transaction. */
export function testGuard({ program, stateOf, failingWrite }: Setting): void {
  it('a stale fence is refused by the guard', async () => {
    const locks = new Holdfast(memory())
    const old = await locks.mutex('order:42').acquire()
    await locks.breakHold('order:42')
    const newer = await locks.mutex('order:42').acquire()
    await program().setState(newer, 42, 'paid')
    const stale = { code: 'STALE_FENCE', newestFence: newer.fence }
    await expect(program().setState(old, 42, 'cancelled')).rejects.toMatchObject(stale)
    expect(await stateOf()).toBe('paid')
    await program().setState(newer, 42, 'shipped')
    expect(await stateOf()).toBe('shipped')
    await locks.close({ drain: 0 })
  })

  it('work that throws leaves no fence behind', async () => {
    const holdWith = (fence: number) => ({ resource: 'order:43', fence, isExclusive: true }) as Hold
    await expect(failingWrite(holdWith(2))).rejects.toThrow()
    await program().setState(holdWith(1), 42, 'paid')
    expect(await stateOf()).toBe('paid')
  })
}
