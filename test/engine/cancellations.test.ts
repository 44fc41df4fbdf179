import { expect, it, onTestFinished } from 'vitest'
import { Holdfast } from '../../src/index.js'
import { memory } from '../../src/stores/memory/index.js'
import { InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'

async function waitingId(locks: Holdfast): Promise<string | undefined> {
  for await (const { waiters } of locks.inspect({ prefix: 'door' })) return waiters[0]?.id
  return undefined
}

/** A waiter whose place is taken away while the store does not answer reads. */
async function waiterWithoutPlace(): Promise<{
  locks: Holdfast
  waiter: Promise<unknown>
  answer: () => void
}> {
  const store = memory()
  const others = new Holdfast(store)
  onTestFinished(() => others.close({ drain: 0 }))
  const hold = await others.mutex('door').acquire()
  onTestFinished(() => void hold.release())
  const intercepted = new InterceptedStore(store)
  const locks = new Holdfast(intercepted, { order: 'strict', storeTimeout: '1s' })
  const waiter = locks.mutex('door').acquire()
  waiter.catch(() => {})
  const idOf = () => waitingId(others)
  await expect.poll(idOf).toBeDefined()
  let answer = (): void => {}
  const kept = new Promise<void>((resolve) => {
    answer = resolve
  })
  intercepted.around = async (call, go) => {
    if (call.method === 'read') await kept
    return go()
  }
  const raw = store.connect({ id: 'operator', space: 'default', push: () => {} })
  onTestFinished(() => raw.close())
  await raw.cancel('door', (await idOf()) ?? '')
  await expect.poll(() => intercepted.count('read')).toBe(1)
  return { locks, waiter, answer }
}

it('close turns away a waiter that is asking whether it was cancelled', async () => {
  const { locks, waiter, answer } = await waiterWithoutPlace()
  const closing = locks.close({ drain: 0 })
  answer()
  await expect(waiter).rejects.toMatchObject({ code: 'CLOSED' })
  await closing
})

it('a waiter that cannot learn whether it was cancelled is turned away by close', async () => {
  const { locks, waiter } = await waiterWithoutPlace()
  await locks.close({ drain: 0 })
  await expect(waiter).rejects.toMatchObject({ code: 'CLOSED' })
})

it('the mark of a cancelled waiter is removed when the waiter has seen it', async () => {
  const store = memory()
  const locks = new Holdfast(store, { order: 'strict' })
  onTestFinished(() => locks.close({ drain: 0 }))
  const hold = await locks.mutex('door').acquire()
  const waiter = locks.mutex('door').acquire()
  waiter.catch(() => {})
  const idOf = () => waitingId(locks)
  await expect.poll(idOf).toBeDefined()
  await locks.cancelWaiter('door', (await idOf()) ?? '')
  await expect(waiter).rejects.toMatchObject({ code: 'CANCELLED' })
  const raw = store.connect({ id: 'reader', space: 'default', push: () => {} })
  onTestFinished(() => raw.close())
  const marks = async (): Promise<number> => {
    let count = 0
    for await (const { key } of raw.states('cancelled:')) count += key.length > 0 ? 1 : 0
    return count
  }
  await expect.poll(marks).toBe(0)
  await hold.release()
})
