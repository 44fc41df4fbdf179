import { expect, it } from 'vitest'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { memory } from '../../src/stores/memory/index.js'

const turn = () => new Promise((resolve) => setImmediate(resolve))

it('a nested run that outlives the work enters the other locks that were taken with its own', async () => {
  await using locks = new Holdfast(memory(), { drain: 0 })
  const done: string[] = []
  const both = locks.all(['a', 'b']).run(() => {
    void locks.mutex('a').run(async () => {
      await turn()
      await locks.mutex('b').run(() => void done.push('b inside a'), { wait: '10s' })
    })
  })
  await both
  expect(done).toEqual(['b inside a'])
})

it('a nested run that gave its hold back and outlives the work still is inside the outer one', async () => {
  await using locks = new Holdfast(memory(), { drain: 0 })
  const door = locks.mutex('door')
  const done: string[] = []
  await door.run(() => {
    void door.run(async (inner) => {
      await inner.release()
      await turn()
      await door.run(() => void done.push('innermost'), { wait: '10s' })
    })
  })
  expect(done).toEqual(['innermost'])
})

it('several locks that are entered again while the work ends belong to it', async () => {
  await using locks = new Holdfast(memory(), { drain: 0 })
  const done: string[] = []
  await locks.all(['a', 'b']).run(() => {
    void locks.mutex('b').run(turn)
    void locks.all(['a', 'b']).run(() => void done.push('both'), { wait: '10s' })
  })
  expect(done).toEqual(['both'])
})
