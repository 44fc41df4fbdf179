import { expect, it } from 'vitest'
import { type Fenced, memoryGuard, redisGuard } from '../../src/fence/index.js'
import { Holdfast } from '../../src/index.js'
import { memory } from '../../src/stores/memory/index.js'

it('a hold is what a guard takes', async () => {
  const locks = new Holdfast(memory())
  const guard = memoryGuard()
  const first = await locks.mutex('r').acquire()
  const taken: Fenced = first
  await guard.check(taken)
  await first.release()
  const second = await locks.mutex('r').acquire()
  await guard.check(second)
  await guard.check(second)
  expect(() => guard.check(first)).toThrow(
    expect.objectContaining({ code: 'STALE_FENCE', newestFence: second.fence, resource: 'r' }),
  )
  await locks.close({ drain: 0 })
})

it('a hold that is shared is refused, a writer is not', async () => {
  const locks = new Holdfast(memory())
  const guard = memoryGuard()
  const shared = [
    await locks.readWrite('a').read.acquire(),
    await locks.semaphore('b', 2).acquire(),
    await locks.semaphore('c', 1).acquire(),
  ]
  for (const hold of shared)
    expect(() => guard.check(hold)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
  guard.check(await locks.readWrite('d').write.acquire())
  await locks.close({ drain: 0 })
})

it('a client that is none is refused', () => {
  expect(() => redisGuard({} as never)).toThrow(/ioredis/)
})
