import { expect, it } from 'vitest'
import { deferred } from '../../src/base/deferred.js'
import { FewAtOnce } from '../../src/base/few-at-once.js'
import { VirtualWorld } from '../../src/testing/virtual-env.js'

function scene(most: number, patienceMs = 1000) {
  const world = new VirtualWorld({ seed: 1 })
  const few = new FewAtOnce({ env: world.env({ name: 'p' }), most: () => most, patienceMs })
  const begun: number[] = []
  const ends = Array.from({ length: 5 }, () => deferred<void>())
  const all = ends.map((end, number) =>
    few.run(() => {
      begun.push(number)
      return end.promise
    }),
  )
  return { world, begun, ends, all }
}

it('does so many things at once, and the rest in their order', async () => {
  const { world, begun, ends, all } = scene(2)
  await world.run(1)
  expect(begun).toEqual([0, 1])
  ends[1]?.resolve()
  await world.run(2)
  expect(begun).toEqual([0, 1, 2])
  for (const end of ends) end.resolve()
  await world.until(Promise.all(all))
  expect(begun).toEqual([0, 1, 2, 3, 4])
})

it('goes on behind work that is never done, and after work that fails', async () => {
  const { world, begun, ends, all } = scene(1)
  await world.run(999)
  expect(begun).toEqual([0])
  await world.run(1001)
  expect(begun).toEqual([0, 1])
  const failing = expect(all[1]).rejects.toThrow('no')
  ends[1]?.reject(new Error('no'))
  await failing
  await world.run(1002)
  expect(begun).toEqual([0, 1, 2])
  for (const end of ends) end.resolve()
  await world.until(Promise.allSettled(all))
})
