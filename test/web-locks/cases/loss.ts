import { expect } from 'vitest'
import { HoldfastError } from '../../../src/base/errors.js'
import { hold, onEachStore, rejectsWithDom } from '../site.js'

onEachStore('a lock that is lost', (newSite, it) => {
  it('to an operator: the request rejects at once, and the callback is told by lock.signal', async () => {
    const { client, locks } = newSite()
    const { lock, work, released } = await hold(locks, 'a')
    await client.breakHold('a')
    const error = await rejectsWithDom(released, 'AbortError')
    expect(error.cause).toMatchObject({ code: 'HOLD_LOST', resource: 'a' })
    expect(lock.signal.reason).toBe(error.cause)
    work.resolve('too late')
    await expect(released).rejects.toBe(error)
  })

  it('is not what a callback throws, even if that looks the same', async () => {
    const { locks } = newSite()
    for (const code of ['HOLD_LOST', 'ABORTED', 'CLOSED'] as const) {
      const thrown = new HoldfastError(code, 'of another lock')
      await expect(locks.request('a', () => Promise.reject(thrown))).rejects.toBe(thrown)
    }
  })
})
