import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { systemEnv } from '../../src/base/env.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { HeldResources } from '../../src/redlock/held.js'
import { memory } from '../../src/stores/memory/index.js'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

/** What a listener needs, as seen by whoever wants to know whether it is still in memory. */
function listenTo(signal: AbortSignal): WeakRef<object> {
  const needed = {}
  signal.addEventListener('abort', () => needed)
  return new WeakRef(needed)
}

async function expectForgotten(needed: WeakRef<object>): Promise<void> {
  const isForgotten = (): boolean => {
    collectGarbage()
    return needed.deref() === undefined
  }
  await expect.poll(isForgotten).toBe(true)
}

it('a listener to the signal of several holds is forgotten with them', async () => {
  await using locks = new Holdfast(memory())
  await expectForgotten(await locks.all(['a', 'b']).run((hold) => listenTo(hold.signal)))
})

it('a listener to the signal of a lock in the API of redlock is forgotten with it', async () => {
  await using locks = new Holdfast(memory())
  const use = (): Promise<WeakRef<object>> =>
    locks.all(['a', 'b']).run((hold) => listenTo(new HeldResources(systemEnv, hold).signal))
  await expectForgotten(await use())
})

it('the signal of several holds aborts, though nobody refers to them', async () => {
  await using locks = new Holdfast(memory(), { drain: 0 })
  const lost = new Promise<unknown>((resolve) => {
    const listen = async (): Promise<void> => {
      const { signal } = await locks.all(['a', 'b']).acquire()
      signal.addEventListener('abort', () => resolve(signal.reason))
    }
    void listen()
  })
  await expect.poll(() => locks.mutex('b').isLocked()).toBe(true)
  collectGarbage()
  await locks.breakHold('b')
  await expect(lost).resolves.toMatchObject({ code: 'HOLD_LOST', resource: 'b' })
})
